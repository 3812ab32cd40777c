package snug

import (
	"cmp"
	"fmt"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/memory"
)

// Grad is the gradient as a tensor of s, nil if there is none. In-place operations on it
// are allowed.
func (p *Param) Grad(s *Scope) *Tensor {
	if p.grad == nil || !s.ok("gradient") {
		return nil
	}
	s.now = s.site("gradient")
	if p.dev != s.dev {
		s.fail(s.now, fmt.Errorf("%s is not on the scope's device", p.name))
		return s.blank(p.dtype, p.shape)
	}
	if err := p.settle(); err != nil {
		s.fail(s.now, err)
		return s.blank(p.dtype, p.shape)
	}
	return s.own(&Tensor{dtype: p.dtype, shape: p.shape, strides: p.strides, st: p.grad})
}

// HasGrad reports whether a backward pass has reached p since the last Step or Zero.
func (p *Param) HasGrad() bool { return p.grad != nil }

// begun is a scope's first touch of a gradient.
type begun struct {
	p       *Param
	created bool
}

// undo leaves no half sum behind: empty again, or marked.
func (b begun) undo() {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if b.p.grad == nil {
		return
	}
	if b.p.incomplete = !b.created; b.created {
		b.p.grad.release()
		b.p.grad, b.p.due = nil, 0
	}
}

// sum is the gradient, which s is about to add to, nil if there is none yet.
func (p *Param) sum(s *Scope) (*Tensor, error) {
	p.mu.Lock()
	mine, taken, bad := p.adder == s, p.adder != nil, p.incomplete
	if !taken && !bad {
		p.adder = s
	}
	p.mu.Unlock()
	if !mine {
		if taken || bad {
			return nil, p.refuse(bad)
		}
		s.began = append(s.began, begun{p, p.grad == nil})
	}
	if p.grad == nil {
		return nil, nil
	}
	return &Tensor{s: s, dtype: p.dtype, shape: p.shape, strides: p.strides, st: p.grad}, cmp.Or(s.fetch(p.grad), p.settle())
}

// add puts g into the gradient; the first one becomes it, without a copy where g has its
// storage for itself.
func (p *Param) add(s *Scope, g *Tensor) error {
	sum, err := p.sum(s)
	if err != nil {
		return err
	}
	if sum != nil {
		s.kernel("add", nil, [3]uint64{}, []*Tensor{sum}, sum, g)
		return nil
	}
	if g.h == nil || g.h.frame != s.frame || !g.exclusive() {
		own := s.result(p.dtype, p.shape)
		s.kernel("copy", nil, [3]uint64{}, []*Tensor{own}, g)
		if s.err != nil {
			return nil
		}
		g = own
	}
	p.grad = s.take(g).st
	p.grad.id, p.grad.grad = 0, true
	p.grad.at = s.siteOf("gradient", p)
	p.grad.mem.SetCategory(memory.Gradients)
	p.grad.mem.SetOwner(p.grad.at)
	return nil
}

func (p *Param) refuse(incomplete bool) error {
	if incomplete {
		return fmt.Errorf("%s: %w: a failed scope had begun to add to it; Zero or Drop first", p.name, ErrIncomplete)
	}
	return fmt.Errorf("%s: %w by another scope's backward", p.name, ErrInUse)
}

// Zero frees the gradient, complete or not.
func (p *Param) Zero() error {
	return p.alone(func() error {
		if p.grad != nil {
			p.grad.release()
		}
		p.grad, p.due, p.incomplete = nil, 0, false
		return nil
	})
}

// Finish runs an OnGrad function, which alone may update p inside a scope.
func (p *Param) Finish(s *Scope, fn func(*Param) error) error {
	p.updater = s
	defer func() { p.updater = nil }()
	return fn(p)
}

// Ready reports whether Update would be refused.
func (p *Param) Ready() error {
	if p.incomplete {
		return p.refuse(true)
	}
	return p.alone(func() error { return nil })
}

// ScaleGrad multiplies the gradient. That waits for who reads it: most steps of optimizers
// do it on the way.
func (p *Param) ScaleGrad(by float64) error {
	return p.alone(func() error {
		p.due = cmp.Or(p.due, 1) * by
		if p.due == 0 { // which means that nothing is due
			return p.scale(0)
		}
		return nil
	})
}

// settle multiplies the gradient by what is due.
func (p *Param) settle() error {
	by := p.due
	if p.due = 0; by == 0 || by == 1 {
		return nil
	}
	return p.scale(by)
}

func (p *Param) scale(by float64) error {
	g := []driver.Array{p.array(p.grad)}
	return p.launch("scale", &driver.Args{F: []float64{by}, Out: g, In: g})
}

// UpdateGrad runs a kernel over the gradient in place.
func (p *Param) UpdateGrad(kernel string, f ...float64) error {
	return p.alone(func() error {
		if err := p.settle(); err != nil {
			return err
		}
		g := []driver.Array{p.array(p.grad)}
		return p.launch(kernel, &driver.Args{F: f, Out: g, In: g})
	})
}

// GradNorm waits; not finite if an element is not. A dry run has 0.
func (p *Param) GradNorm() (float64, error) {
	n, err := GradNorms([]*Param{p})
	return n[0], err
}

func (p *Param) launch(kernel string, a *driver.Args) error {
	k, err := p.kernel(kernel, a)
	if err != nil {
		return err
	}
	return p.dev.launch(k, a, p.dev.mem, p.workspace(kernel))
}

func (p *Param) kernel(name string, a *driver.Args) (driver.Kernel, error) {
	k, err := driver.Find(name, firstType(a), p.dev.backend)
	if err != nil {
		err = fmt.Errorf("%s: %w: %w", p.name, ErrDType, err)
	}
	return k, err
}

// workspace allocates what a kernel over p works in.
func (p *Param) workspace(kernel string) func(bytes int64) (*memory.Block, error) {
	return func(bytes int64) (*memory.Block, error) {
		b, err := p.dev.mem.Alloc(memory.Request{Bytes: bytes, Category: memory.Workspace, Owner: p.dev.here(kernel, p)})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		return b, nil
	}
}
