package memory

import (
	"errors"
	"fmt"
	"strings"
)

// ErrOutOfMemory is what every *OutOfMemoryError is, for errors.Is.
var ErrOutOfMemory = errors.New("out of memory")

// Cause of an OutOfMemoryError.
type Cause string

const (
	Capacity      Cause = "capacity"      // more than the limit would be in use
	Limited       Cause = "limit"         // the same, but the device has more than the limit that was set
	Fragmentation Cause = "fragmentation" // there is enough, but not in one piece
	Refused       Cause = "device"        // the device gave less than the limit
	Injected      Cause = "injected"      // by FailAt
)

// Holder is a module and what its blocks have allocated.
type Holder struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// OutOfMemoryError holds numbers and strings only: keeping it keeps no memory. Numbers
// are bytes, of the moment of failure; Retries and Count are the pool's so far.
type OutOfMemoryError struct {
	Requested    int64
	Category     Category
	Path, Op, At string // of the request; empty where unknown
	Cause        Cause
	Refusal      string // what the device said, if it refused

	Limit, DeviceLimit  int64 // of reserved memory: the one set, the device's own
	Reserved, Allocated int64
	Cached, LargestFree int64 // free in the pool; of that in one piece
	DeviceFree          int64 // within the limit and not reserved
	Categories          ByCategory
	Holders             []Holder // the largest five, by module path
	Savers              []Saver  // that would help, the one that frees most first; an estimate
	Retries, Count      int64
	Growable            bool
}

func (e *OutOfMemoryError) Is(target error) bool { return target == ErrOutOfMemory }

func (e *OutOfMemoryError) Error() string {
	s := fmt.Sprintf("%s: limit %s, in use %s, cached %s with %s in one piece, %s left on the device", e.title(),
		FormatBytes(e.Limit), FormatBytes(e.Allocated), FormatBytes(e.Cached), FormatBytes(e.LargestFree), FormatBytes(e.DeviceFree))
	if e.Refusal != "" {
		s += "; " + e.Refusal
	}
	return s
}

func (e *OutOfMemoryError) title() string {
	return fmt.Sprintf("out of memory: %s for %s%s (%s)", FormatBytes(e.Requested), e.Category, where(e.Path, e.Op, e.At), e.Cause)
}

// Report is a table: the numbers, what the memory in use is for, who holds most of it,
// which savers would help by how much, and a line of advice.
func (e *OutOfMemoryError) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", e.title())
	row(&b, "limit", FormatBytes(e.Limit))
	if e.Limit != e.DeviceLimit {
		row(&b, "the device's own", FormatBytes(e.DeviceLimit))
	}
	row(&b, "in use", FormatBytes(e.Allocated))
	row(&b, "cached", FormatBytes(e.Cached))
	row(&b, "  in one piece", FormatBytes(e.LargestFree))
	row(&b, "left on the device", FormatBytes(e.DeviceFree))
	row(&b, "retries", number(e.Retries))
	row(&b, "out of memory", number(e.Count))
	if e.Refusal != "" {
		fmt.Fprintf(&b, "\n%s\n", e.Refusal)
	}
	writeCategories(&b, e.Categories, nil)
	writeHolders(&b, e.Holders)
	if len(e.Savers) > 0 {
		fmt.Fprintln(&b, "\nwould free about")
		for _, s := range e.Savers {
			fmt.Fprintf(&b, "%12s  %s\n", FormatBytes(s.Bytes), s.Name)
		}
	}
	if advice := e.advice(); advice != "" {
		fmt.Fprintf(&b, "\nadvice: %s\n", advice)
	}
	return b.String()
}

func (e *OutOfMemoryError) advice() string {
	if c := e.Category; (e.Cause == Capacity || e.Cause == Limited) && (c == Parameters || c == OptimizerState) {
		return "the model and its optimizer do not fit, whatever the batch: fewer parameters, a smaller StateDType, SGD without momentum, or offload.State and offload.Params"
	}
	switch e.Cause {
	case Capacity:
		return "a smaller batch, with gradient accumulation to the same size, or checkpointing"
	case Limited:
		return "raise the limit that was set, or a smaller batch with gradient accumulation"
	case Refused:
		return "stop what else uses the device, or a smaller batch with gradient accumulation"
	case Fragmentation:
		if e.Growable {
			return "EmptyCache between phases whose sizes differ"
		}
		return "growable segments, or EmptyCache between phases whose sizes differ"
	}
	return "" // a test asked for the failure
}

func (p *Pool) outOfMemory(r Request, err error) *OutOfMemoryError {
	p.mu.Lock()
	p.stats.OutOfMemory++
	s := p.read()
	e := &OutOfMemoryError{
		Requested: r.Bytes, Category: r.Category, Cause: p.cause(rounded(r.Bytes), err),
		Limit: p.limit, DeviceLimit: p.cfg.LimitBytes, Reserved: s.Reserved, Allocated: s.Allocated,
		Cached: s.Cached(), LargestFree: s.LargestFree, DeviceFree: max(0, p.limit-s.Reserved),
		Categories: s.Categories, Retries: s.Retries, Count: s.OutOfMemory, Growable: p.grower != nil,
	}
	if e.Cause == Refused {
		e.Refusal = err.Error()
	}
	held := p.held()
	p.mu.Unlock()
	if o := r.Owner; o != nil {
		e.Path, e.Op, e.At = o.Path(), o.Op(), o.At()
	}
	e.Holders = largest(byPath(held), 5)
	if e.Cause == Capacity || e.Cause == Limited {
		e.Savers = savers(s.Categories, r.Bytes, r.Category)
	}
	return e
}

func (p *Pool) cause(size int64, err error) Cause {
	limit, own := p.limit, p.cfg.LimitBytes
	if p.grower != nil {
		limit, own = limit/p.granule*p.granule, own/p.granule*p.granule
	}
	switch in := p.stats.Active; {
	case err == errInjected:
		return Injected
	case size > limit-in && size <= own-in:
		return Limited
	case size > limit-in:
		return Capacity
	case err != nil:
		return Refused
	}
	return Fragmentation
}
