package memory

// Usage is bytes but for the last two. Reserved is what the device has given; Active
// what may be in use: Allocated, the blocks, and those freed ones that another queue
// may still use; Requested what was asked for. InactiveSplit is what is free in
// segments that have something active.
type Usage struct {
	Requested     int64 `json:"requested"`
	Allocated     int64 `json:"allocated"`
	Active        int64 `json:"active"`
	Reserved      int64 `json:"reserved"`
	InactiveSplit int64 `json:"inactive_split"`
	Segments      int64 `json:"segments"`
	Blocks        int64 `json:"blocks"`
}

// Stats are of now, where not said otherwise; two of them can be compared by ==.
type Stats struct {
	Usage
	Peak  Usage `json:"peak"`  // each at its own
	Total Usage `json:"total"` // all that ever came
	Freed Usage `json:"freed"` // all that went again

	Used        int64      `json:"used"`         // of Requested, by the blocks' SetUsed
	LargestFree int64      `json:"largest_free"` // the longest free run
	Categories  ByCategory `json:"categories"`   // of Allocated
	AtPeak      ByCategory `json:"at_peak"`      // the same when Allocated was at its peak
	Peaks       ByCategory `json:"peaks"`        // each category's own

	Requests     int64 `json:"requests"`      // calls of Alloc
	Retries      int64 `json:"retries"`       // that released cached memory to go on
	Trims        int64 `json:"trims"`         // that released it because of SetTrim
	Moved        int64 `json:"moved"`         // bytes that went to where blocks needed them; see Config.Moving
	OutOfMemory  int64 `json:"out_of_memory"` // errors
	Rescues      int64 `json:"rescues"`       // that freed something
	RescuedBytes int64 `json:"rescued_bytes"`
}

// Cached is reserved and not in use.
func (s Stats) Cached() int64 { return s.Reserved - s.Active }

// Stats costs no more than an Alloc, whatever the number of blocks.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read()
}

func (p *Pool) read() Stats {
	s := p.stats
	t, u := s.Total, s.Usage
	s.Freed = Usage{
		Requested: t.Requested - u.Requested, Allocated: t.Allocated - u.Allocated, Active: t.Active - u.Active,
		Reserved: t.Reserved - u.Reserved, InactiveSplit: t.InactiveSplit - u.InactiveSplit,
		Segments: t.Segments - u.Segments, Blocks: t.Blocks - u.Blocks,
	}
	for _, l := range p.classes {
		if n := len(l.free); n > 0 {
			s.LargestFree = max(s.LargestFree, l.free[n-1].size)
		}
	}
	return s
}

// ResetPeak starts the peaks anew from what is in use.
func (p *Pool) ResetPeak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Peak, p.stats.AtPeak, p.stats.Peaks = p.stats.Usage, p.stats.Categories, p.stats.Categories
}

// account changes the statistics by d, which concerns s; InactiveSplit follows.
func (p *Pool) account(s *segment, d Usage) {
	before := s.inactive()
	s.size += d.Reserved
	s.active += d.Active
	d.InactiveSplit = s.inactive() - before
	now, peak, total := &p.stats.Usage, &p.stats.Peak, &p.stats.Total
	count(&now.Requested, &peak.Requested, &total.Requested, d.Requested)
	count(&now.Allocated, &peak.Allocated, &total.Allocated, d.Allocated)
	count(&now.Active, &peak.Active, &total.Active, d.Active)
	count(&now.Reserved, &peak.Reserved, &total.Reserved, d.Reserved)
	count(&now.InactiveSplit, &peak.InactiveSplit, &total.InactiveSplit, d.InactiveSplit)
	count(&now.Segments, &peak.Segments, &total.Segments, d.Segments)
	count(&now.Blocks, &peak.Blocks, &total.Blocks, d.Blocks)
}

func count(now, peak, total *int64, d int64) {
	*now += d
	*peak = max(*peak, *now)
	*total += max(0, d)
}

func (s *segment) inactive() int64 {
	if s.active == 0 {
		return 0
	}
	return s.size - s.active
}

func (p *Pool) rescued(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Rescues++
	p.stats.RescuedBytes += bytes
}
