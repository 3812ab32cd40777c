package memory

// Snapshot is a pool at one moment: plain values, to be kept or written as JSON.
type Snapshot struct {
	Limit    int64     `json:"limit"`
	Stats    Stats     `json:"stats"`
	Segments []Segment `json:"segments"`
}

// Segment is memory that the device gave at once; a growable one has as much of it as
// its regions that are not empty.
type Segment struct {
	Number  int      `json:"number"`
	Bytes   int64    `json:"bytes"`
	Queue   int      `json:"queue"`
	Small   bool     `json:"small"` // for requests up to 1 MiB
	Regions []Region `json:"regions"`
}

// Region is a stretch of a segment. What follows State is that of an active one.
type Region struct {
	Offset    int64     `json:"offset"`
	Bytes     int64     `json:"bytes"`
	State     State     `json:"state"`
	Requested int64     `json:"requested,omitempty"`
	Used      int64     `json:"used,omitempty"`
	Category  *Category `json:"category,omitempty"`
	Path      string    `json:"path,omitempty"`
	Op        string    `json:"op,omitempty"`
	At        string    `json:"at,omitempty"`
	PinnedBy  string    `json:"pinned_by,omitempty"`
}

// Snapshot asks every block's owner, so it takes some microseconds a block.
func (p *Pool) Snapshot() Snapshot {
	p.mu.Lock()
	s := Snapshot{Limit: p.limit, Stats: p.read()}
	var uses []use
	for _, seg := range p.segs {
		g := Segment{Number: seg.number, Bytes: seg.size, Queue: seg.class.queue, Small: seg.class.small}
		for c := seg.first; c != nil; c = c.next {
			g.Regions = append(g.Regions, Region{Offset: c.off, Bytes: c.size, State: c.state})
			uses = append(uses, c.use)
		}
		s.Segments = append(s.Segments, g)
	}
	p.mu.Unlock()
	for _, g := range s.Segments {
		for i := range g.Regions {
			g.Regions[i].describe(uses[i])
		}
		uses = uses[len(g.Regions):]
	}
	return s
}

// describe asks the owner, who may need locks of its own: not while the pool is locked.
func (r *Region) describe(u use) {
	if r.State != Active {
		return
	}
	r.Requested, r.Used, r.Category = u.requested, u.used, &u.category
	if u.owner != nil {
		r.Path, r.Op, r.At = u.owner.Path(), u.owner.Op(), u.owner.At()
	}
	if u.pinnedBy != nil {
		r.PinnedBy = u.pinnedBy()
	}
}
