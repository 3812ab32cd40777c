package snug

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/memory"
)

// Param is a value that outlives scopes, with its gradient; or a buffer, without one.
// nn.Init places it on a device, nn.Close frees it.
type Param struct {
	init    Init
	shape   []int
	strides []int
	dtype   DType
	buffer  bool

	mu         sync.Mutex
	name       string
	dev        *Device
	cat        memory.Category // of its value
	frozen     bool
	away       bool    // placed on the host
	gradAway   bool    // whose gradients wait there
	via        *stage  // what a state's updates go through; nil: nothing
	taker      *string // the optimizer that updates it; nil: none
	st, grad   *storage
	due        float64 // what grad is still to be multiplied by; 0: nothing
	incomplete bool    // a failed scope had begun to add to grad
	users      int     // open scopes that have read it
	adder      *Scope  // whose backward adds to grad
	updater    *Scope  // inside whose OnGrad it may be updated
}

// NewParam allocates nothing. The type is Float32 unless SetDType is called before nn.Init.
func NewParam(init Init, shape ...int) *Param { return newParam(init, shape, false) }

// NewBuffer is a value without a gradient: statistics, replay, running sums.
func NewBuffer(init Init, shape ...int) *Param { return newParam(init, shape, true) }

func newParam(init Init, shape []int, buffer bool) *Param {
	if err := checkShape(shape); err != nil {
		panic("snug: " + err.Error())
	}
	return &Param{init: init, shape: slices.Clone(shape), strides: driver.RowMajor(shape), buffer: buffer}
}

// Name is the path in the model that nn.Init was given: "layer1.0.conv1.weight".
func (p *Param) Name() string { return p.name }
func (p *Param) Shape() []int { return slices.Clone(p.shape) }
func (p *Param) Len() int     { return numel(p.shape) }
func (p *Param) DType() DType { return p.dtype }

// Device is nil before nn.Init and after Close.
func (p *Param) Device() *Device { return p.dev }
func (p *Param) IsBuffer() bool  { return p.buffer }

// SetDType chooses the type, before nn.Init.
func (p *Param) SetDType(d DType) error {
	if p.dev != nil {
		return fmt.Errorf("%s: %w: its type is chosen before nn.Init", p.name, ErrInUse)
	}
	p.dtype = d
	return nil
}

// SetFrozen turns gradients, and the movement of a batch norm's statistics, off or on.
func (p *Param) SetFrozen(on bool) { p.mu.Lock(); p.frozen = on; p.mu.Unlock() }

func (p *Param) Frozen() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.frozen }

func (p *Param) bytes() int64 { return int64(p.Len()) * int64(p.dtype.Size()) }

// Place puts parameters on the device with their names and first values, all or none;
// those placed already stay. A nil r leaves zeros. nn.Init and optimizers call it.
func Place(ctx context.Context, d *Device, r *Rand, c memory.Category, ps iter.Seq2[string, *Param]) (err error) {
	var placed []*Param
	at := d.statePlace()
	host := c == memory.OptimizerState && at != StateOnDevice || c == memory.Workspace && at == StateOnHost
	defer func() {
		if err != nil {
			for _, p := range placed {
				p.Close()
			}
		}
	}()
	for name, p := range ps {
		if p.dev != nil {
			if p.dev != d {
				return fmt.Errorf("init %s: %w: it is on %s, not on %s; Close it first", name, ErrInUse, p.dev.name, d.name)
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("init %s: %w", name, err)
		}
		cat := c
		if p.buffer && c == memory.Parameters {
			cat = memory.Buffers
		}
		p.name, p.cat = name, cat
		st, err := d.fixed(p, p.away || host)
		if err != nil {
			return fmt.Errorf("init %s: %w", name, err)
		}
		p.dev, p.st = d, st
		placed = append(placed, p)
		if d.values {
			if err := p.fill(r); err != nil {
				return fmt.Errorf("init %s: %w", name, err)
			}
		}
	}
	return nil
}

// fill computes the first values. Each depends on (seed, name, index) alone.
func (p *Param) fill(r *Rand) error {
	a := p.array(p.st)
	if p.dev.card != nil {
		return p.fillApart(&a, r)
	}
	p.draw(&a, 0, r)
	return nil
}

// draw computes those that a has, from the first on.
func (p *Param) draw(a *driver.Array, first int, r *Rand) {
	if r == nil || p.init == nil {
		host.Clear(a.Data)
		return
	}
	host.Draw(a, r.initKey(p.name), first, func() func(int, func() float64) float64 { return p.init(p.shape) })
}

func (p *Param) array(st *storage) driver.Array {
	a := driver.Array{Type: p.dtype, Shape: p.shape, Strides: p.strides}
	switch {
	case !p.dev.values:
	case st.absent():
		a.Data = st.away.Bytes() // kernels reach it, a card's by way of the bus
	default:
		a.Data = st.mem.Bytes()
	}
	return a
}

// Close frees the value and the gradient.
func (p *Param) Close() error {
	if p.dev == nil {
		return nil
	}
	p.mu.Lock()
	used := p.users > 0 // also in an OnGrad function, where Zero is allowed
	p.mu.Unlock()
	if used {
		return fmt.Errorf("close %s: %w by an open scope", p.name, ErrInUse)
	}
	if err := p.Zero(); err != nil {
		return err
	}
	if p.via != nil {
		p.via.leave(p)
	}
	p.st.release()
	p.st, p.dev = nil, nil
	p.Leave(p.taker)
	return nil
}

// Take says that the optimizer of that name, which the pointer stands for, updates p, until
// it calls Leave. Meanwhile another one is refused: it would find no gradients where the first
// has stepped. For package optim.
func (p *Param) Take(optimizer *string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taker != nil {
		return fmt.Errorf("%w by another optimizer, %s: Close that first", ErrInUse, *p.taker)
	}
	p.taker = optimizer
	return nil
}

// Leave undoes Take.
func (p *Param) Leave(optimizer *string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taker == optimizer {
		p.taker = nil
	}
}

// In is the value as a tensor of s, one for the whole scope.
func (p *Param) In(s *Scope) *Tensor {
	t := s.params[p]
	if t == nil {
		if p == nil {
			return nil
		}
		t = s.blank(p.dtype, p.shape)
		if !s.ok("parameter") {
			return t
		}
		if err := p.enter(s, t); err != nil {
			s.last = p
			s.Fail("parameter", err)
			return t
		}
		s.params[p] = t
		s.order = append(s.order, p)
	}
	s.last = p
	return t
}

func (p *Param) enter(s *Scope, t *Tensor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dev == nil:
		return fmt.Errorf("not on a device: call nn.Init")
	case p.dev != s.dev:
		return fmt.Errorf("%s is on %s and the scope on %s", p.name, p.dev.name, s.dev.name)
	}
	p.users++
	if t.seen = p.st.version; p.st.absent() {
		t.st = p.st.guest()
	} else {
		t.st = p.st.hold()
	}
	if !p.buffer && !p.frozen && p.dtype.Float() {
		t.slot = s.slots.new()
		t.slot.param, t.slot.dtype = p, p.dtype
	}
	return nil
}

func (p *Param) leave(s *Scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.adder == s {
		p.adder = nil
	}
}

// alone runs fn while no scope reads p, but the one whose OnGrad this is.
func (p *Param) alone(fn func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.unused(); err != nil {
		return err
	}
	return fn()
}

// unused reports an open scope that reads p, which is locked.
func (p *Param) unused() error {
	if p.users > 1 || p.users == 1 && p.updater == nil {
		return fmt.Errorf("%s: %w by an open scope", p.name, ErrInUse)
	}
	return nil
}
