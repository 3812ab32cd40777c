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
	var resolve []func()
	for _, seg := range p.segs {
		g := Segment{Number: seg.number, Bytes: seg.size, Queue: seg.class.queue, Small: seg.class.small}
		for c := seg.first; c != nil; c = c.next {
			r := Region{Offset: c.off, Bytes: c.size, State: c.state}
			if b := c.block; b != nil {
				category := b.category
				r.Requested, r.Used, r.Category = b.requested, b.used, &category
			}
			g.Regions = append(g.Regions, r)
		}
		for i, c := 0, seg.first; c != nil; i, c = i+1, c.next {
			if b := c.block; b != nil {
				r, owner, pinnedBy := &g.Regions[i], b.owner, b.pinnedBy
				resolve = append(resolve, func() { r.resolve(owner, pinnedBy) })
			}
		}
		s.Segments = append(s.Segments, g)
	}
	p.mu.Unlock()
	for _, f := range resolve {
		f()
	}
	return s
}

func (r *Region) resolve(o Owner, pinnedBy func() string) {
	if o != nil {
		r.Path, r.Op, r.At = o.Path(), o.Op(), o.At()
	}
	if pinnedBy != nil {
		r.PinnedBy = pinnedBy()
	}
}
