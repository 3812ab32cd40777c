package snug

import (
	"fmt"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/memory"
)

// offloading is what OffloadSaved asked for.
type offloading struct {
	min, ahead int64
	dir        string // of a file; "": the host's memory
}

// OffloadSaved moves what the outermost Blocks inside save, in storages of at least
// minBytes, until backward reads it: to the host or, with a dir, to the device's Disk
// there. Up to aheadBytes of the device are for copies under way. For package offload.
func OffloadSaved(minBytes, aheadBytes int64, dir string) Option {
	o := &offloading{minBytes, aheadBytes, dir}
	option := Option{kind: "offload", set: func(m *mode) { m.offload = o }}
	if min(minBytes, aheadBytes) < 0 {
		option.err = fmt.Errorf("offload of storages from %d bytes on, %d bytes ahead: 0 or more wanted", minBytes, aheadBytes)
	}
	return option
}

// traffic is what a scope moves between the device and the host. Copies run beside the
// computation, one after the other. What is allocated and freed, and when, the scope's
// goroutine decides, by sizes and order alone: a dry run decides the same.
type traffic struct {
	ahead int64           // that bytes may be
	bytes int64           // of moves
	moves []*move         // in order
	last  <-chan struct{} // of the latest copy that the host makes
	next  int             // what the tape saved from here on is on the device, or comes
}

// move is a storage that is on the device and on the host: leaving until it has to make
// room, or coming until it is used.
type move struct {
	st   *storage
	of   *traffic
	out  bool
	copy driver.Copy // nil in a dry run
}

// hostCopy is one between two places of the host.
type hostCopy struct {
	done chan struct{}
	err  error
}

func (c *hostCopy) Join() error { <-c.done; return c.err }

func (t *traffic) start(st *storage, out bool) {
	m := &move{st: st, of: t, out: out}
	st.move = m
	t.moves = append(t.moves, m)
	t.bytes += st.bytes
	if !st.dev.values {
		return
	}
	to, from, before := st.mem.Bytes(), st.away.Bytes(), t.last
	if out {
		to, from = from, to
	}
	if st.dev.card != nil {
		var via func(to, from []byte) error
		if st.home == nil && st.tier != st.dev.host { // a file
			via = host.Copy
		}
		m.copy = st.dev.card.Start(to, from, out, via)
		return
	}
	run := func() error { return host.Copy(to, from) }
	if spot, mem := st.spot, st.mem.Bytes(); spot != nil {
		run = func() error { return spot.Copy(mem, out) }
	}
	c := &hostCopy{done: make(chan struct{})}
	m.copy, t.last = c, c.done
	go func() {
		defer close(c.done)
		if before != nil {
			<-before
		}
		c.err = run()
	}()
}

// end has what follows come after the copy, and frees one of the two places. A card is not
// waited for: kernels and copies that are queued from now on come after it, so that their
// memory may be used at once, and a dry run decides the same.
func (m *move) end(onDevice bool) error {
	var err error
	if m.copy != nil {
		err = m.copy.Join()
	}
	st, t := m.st, m.of
	st.move = nil
	t.bytes -= st.bytes
	t.moves = slices.DeleteFunc(t.moves, func(o *move) bool { return o == m })
	if m.out && err != nil { // the device still has it
		onDevice = true
	}
	if onDevice && st.home == nil {
		st.leaveHost()
	} else if !onDevice {
		st.dev.mem.Free(st.mem)
		st.mem = nil
	}
	return err
}

// room ends moves to the host, the oldest first, until more bytes may be under way.
func (t *traffic) room(bytes int64) (bool, error) {
	for t.bytes+bytes > t.ahead {
		i := slices.IndexFunc(t.moves, func(m *move) bool { return m.out })
		if i < 0 {
			return false, nil
		}
		if err := t.moves[i].end(false); err != nil {
			return false, err
		}
	}
	return true, nil
}

// clear has nothing under way any more, for want of memory on the device.
func (t *traffic) clear() (bytes int64) {
	for len(t.moves) > 0 {
		m := t.moves[0]
		if m.end(false); m.st.mem == nil {
			bytes += m.st.bytes
		}
	}
	return bytes
}

// offload sends what these entries saved to the host, but no parameter and no result.
func (s *Scope) offload(tape []*entry, o *offloading, results []*Tensor) error {
	tier := s.dev.host
	if o.dir != "" {
		var err error
		if tier, err = s.dev.Disk(o.dir); err != nil {
			return err
		}
	}
	stay := map[*storage]bool{}
	for _, y := range results {
		stay[y.st] = true
	}
	for _, a := range s.assigned {
		stay[a.t.st] = true
	}
	var send func([]save) error
	send = func(saved []save) error {
		for _, v := range saved {
			if err := send(v.needs); err != nil {
				return err
			}
			if st := v.st; v.from == nil && !st.fixed && !stay[st] && st.away == nil && st.bytes >= o.min {
				if err := s.send(st, tier); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, e := range tape {
		if err := send(e.saved); err != nil {
			return err
		}
	}
	return nil
}

// send begins st's way to a tier.
func (s *Scope) send(st *storage, tier *memory.Pool) error {
	t := &s.traffic
	wait, err := t.room(st.bytes)
	if err != nil {
		return err
	}
	b, err := tier.Alloc(memory.Request{Bytes: st.bytes, Category: st.category(), Owner: st.at})
	if err != nil {
		return err
	}
	spot, err := s.dev.disks.spot(tier, st.bytes)
	if err != nil {
		tier.Free(b)
		return err
	}
	st.away, st.tier, st.spot = b, tier, spot
	if t.start(st, true); !wait {
		return st.move.end(false)
	}
	return nil
}

// fetch has st on the device, to be used. In backward that makes room for what comes next.
func (s *Scope) fetch(st *storage) error {
	if st.home != nil && st.home.version != st.version {
		return fmt.Errorf("a parameter on the host was written by %s", st.home.writer)
	}
	if !st.absent() && st.move == nil {
		return nil
	}
	ahead := st.move != nil
	if !ahead {
		b, err := s.block(st.bytes, st.category(), st.at)
		if err != nil {
			return err
		}
		st.mem = b
		s.traffic.start(st, false)
	}
	if err := st.move.end(true); err != nil {
		return err
	}
	if st.home != nil {
		s.guests = append(s.guests, st)
	}
	switch {
	case s.walking != nil:
		return s.prefetch()
	case st.home != nil:
		return s.follow(st, ahead)
	}
	return nil
}

// prefetch begins the way back of what the next entries of backward need, as far as there
// is room.
func (s *Scope) prefetch() error {
	for t := &s.traffic; t.next > 0; t.next-- {
		if e := s.tape[t.next-1]; e.want {
			if on, err := s.bring(e.saved); !on || err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Scope) bring(saved []save) (on bool, err error) {
	for _, v := range saved {
		if on, err := s.bring(v.needs); !on || err != nil {
			return on, err
		}
		st := v.st
		switch {
		case v.from != nil:
		case st.move != nil:
			st.move.out = false // it stays
		case st.absent():
			if on, err := s.come(st); !on || err != nil {
				return on, err
			}
		}
	}
	return true, nil
}

// come begins st's way to the device, if there is room.
func (s *Scope) come(st *storage) (on bool, err error) {
	if on, err := s.traffic.room(st.bytes); !on || err != nil {
		return on, err
	}
	b, err := st.dev.mem.Alloc(memory.Request{Bytes: st.bytes, Category: st.category(), Owner: st.at, Spare: s.toSpare()})
	if err != nil {
		return false, nil // there may be enough when it is used
	}
	st.mem = b
	s.traffic.start(st, false)
	return true, nil
}
