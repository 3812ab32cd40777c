package snug

import (
	"errors"
	"fmt"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/memory"
)

// StatePlace is where optimizers keep their state.
type StatePlace int

const (
	StateOnDevice StatePlace = iota
	StateOnHost              // and the update runs there
	StateStreamed            // on the host; the update runs on the device, in a buffer for one parameter's state
)

// PlaceState is for optimizers that are made on d from now on. For package offload.
func (d *Device) PlaceState(at StatePlace) {
	d.stage.mu.Lock()
	d.state = at
	d.stage.mu.Unlock()
}

func (d *Device) statePlace() StatePlace {
	d.stage.mu.Lock()
	defer d.stage.mu.Unlock()
	return d.state
}

// stage is the buffer that streamed states are updated in, one parameter's after another's.
// It is as long as the longest needs, from when that was placed: Step has it already.
type stage struct {
	mu    sync.Mutex
	block *memory.Block
	bytes int64
	users int
}

// staged is how much of the stage p takes.
func staged(p *Param) int64 { return (p.bytes() + 511) / 512 * 512 }

// open has room for these, which are used together.
func (g *stage) open(d *Device, bytes int64, ps []*Param) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if bytes > g.bytes {
		b, err := d.mem.Alloc(memory.Request{Bytes: bytes, Category: memory.Workspace, Owner: d.here("stream", ps[0])})
		if err != nil {
			return fmt.Errorf("init %s: %w", ps[0].name, err)
		}
		if g.block != nil {
			d.mem.Free(g.block)
		}
		g.block, g.bytes = b, bytes
	}
	for _, p := range ps {
		p.streamed = true
	}
	g.users += len(ps)
	return nil
}

func (g *stage) leave(p *Param) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.streamed = false
	if g.users--; g.users == 0 {
		p.dev.mem.Free(g.block)
		g.block, g.bytes = nil, 0
	}
}

// bring is where a kernel finds these states: those that are streamed, on the stage, until
// back takes them home.
func (g *stage) bring(states []*Param) (at []driver.Array, back func() error, err error) {
	var home [][]byte
	at = make([]driver.Array, 0, len(states))
	for _, q := range states {
		at = append(at, q.array(q.st))
		if q.streamed && q.dev.values && home == nil {
			home = make([][]byte, len(states))
		}
	}
	if home == nil {
		return at, func() error { return nil }, nil
	}
	g.mu.Lock()
	var off int64
	for i, q := range states {
		if q.streamed {
			home[i], at[i].Data = at[i].Data, g.block.Bytes()[off:][:q.bytes()]
			err = errors.Join(err, q.dev.stream(at[i].Data, home[i], false))
			off += staged(q)
		}
	}
	return at, func() (err error) {
		defer g.mu.Unlock()
		for i, h := range home {
			if h != nil {
				err = errors.Join(err, states[i].dev.stream(h, at[i].Data, true))
			}
		}
		return err
	}, err
}
