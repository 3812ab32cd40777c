package snug

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/join"
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

// stage is a buffer that updates go through, one parameter's after another's: on the device
// for streamed states, on the host for what lies on a device apart while the CPU updates. It
// is as long as the longest needs, from when states are placed: Step has it already.
type stage struct {
	mu    sync.Mutex
	pool  *memory.Pool
	block *memory.Block
	bytes int64
	users int
}

// staged is how much of the stage p takes.
func staged(p *Param) int64 { return (p.bytes() + 511) / 512 * 512 }

// PlaceStates is Place of an optimizer's states of p, where PlaceState has said, with what
// their updates go through.
func (p *Param) PlaceStates(states iter.Seq2[string, *Param]) error {
	d := p.dev
	if err := Place(context.Background(), d, nil, memory.OptimizerState, states); err != nil {
		return err
	}
	var placed []*Param
	var bytes int64
	for _, q := range states {
		placed, bytes = append(placed, q), bytes+staged(q)
	}
	var err error
	switch at := d.statePlace(); {
	case len(placed) == 0:
	case at == StateStreamed:
		err = d.stage.open(d.mem, p, bytes, placed)
	case at == StateOnHost && d.apart: // a value and its gradient
		err = d.bench.open(d.host, p, 2*staged(p), placed)
	}
	if err != nil {
		for _, q := range placed {
			q.Close()
		}
	}
	return err
}

// open has room for these states of p.
func (g *stage) open(pool *memory.Pool, p *Param, bytes int64, states []*Param) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if bytes > g.bytes {
		b, err := pool.Alloc(memory.Request{Bytes: bytes, Category: memory.Workspace, Owner: p.dev.here("stage", p)})
		if err != nil {
			return fmt.Errorf("init %s: %w", p.name, err)
		}
		if g.block != nil {
			pool.Free(g.block)
		}
		g.pool, g.block, g.bytes = pool, b, bytes
	}
	for _, q := range states {
		q.via = g
	}
	g.users += len(states)
	return nil
}

func (g *stage) leave(q *Param) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q.via = nil
	if g.users--; g.users == 0 && g.block != nil {
		g.pool.Free(g.block)
		g.block, g.bytes = nil, 0
	}
}

// streamed reports whether a state on the host comes to the device to be updated.
func (p *Param) streamed() bool { return p.via != nil && p.via == &p.dev.stage }

// bring is where a kernel finds these states: those that are streamed, on the stage, until
// back takes them home.
func (g *stage) bring(states []*Param) (at []driver.Array, back func() error, err error) {
	var home [][]byte
	at = make([]driver.Array, 0, len(states))
	for _, q := range states {
		at = append(at, q.array(q.st))
		if q.streamed() && q.dev.values && home == nil {
			home = make([][]byte, len(states))
		}
	}
	if home == nil {
		return at, func() error { return nil }, nil
	}
	g.mu.Lock()
	var off int64
	for i, q := range states {
		if q.streamed() {
			home[i], at[i].Data = at[i].Data, g.block.Bytes()[off:][:q.bytes()]
			err = join.Errors(err, q.dev.stream(at[i].Data, home[i], false))
			off += staged(q)
		}
	}
	return at, func() (err error) {
		defer g.mu.Unlock()
		for i, h := range home {
			if h != nil {
				err = join.Errors(err, states[i].dev.stream(h, at[i].Data, true))
			}
		}
		return err
	}, err
}
