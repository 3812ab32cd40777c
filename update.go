package snug

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/join"
	"github.com/snug-ml/snug/memory"
)

// Update is a kernel over a parameter's value and states in place, with its gradient as
// input. It is what optimizers are made of. Key is for kernels that draw.
type Update struct {
	Param  *Param
	Kernel string
	Key    [3]uint64
	F      []float64 // the kernel's numbers
	States []*Param
}

// Updates runs updates of different parameters. Those by one kernel go together, so that
// many small ones cost little more than one. No more is allocated than kernels' workspaces.
func Updates(us []Update) error {
	ps, arrays := make([]*Param, len(us)), 0
	for i, u := range us {
		if ps[i] = u.Param; u.Param.incomplete {
			return u.Param.refuse(true)
		}
		arrays += 2 + len(u.States)
	}
	return together(ps, func() error {
		as, room := make([]driver.Args, len(us)), make([]driver.Array, 0, arrays)
		writers, pc := make([]site, len(us)), caller()
		var all groups
		for i, u := range us {
			p, a, first := u.Param, &as[i], len(room)
			if p.updater != nil {
				p.updater.torn = true
			}
			p.st.version++
			writers[i] = site{dev: p.dev, op: u.Kernel, pc: pc, last: p}
			p.st.writer = &writers[i]
			room = append(room, p.array(p.grad), p.array(p.st))
			for _, q := range u.States {
				room = append(room, q.array(q.st))
			}
			*a = driver.Args{F: u.F, Key: u.Key, In: room[first : first+1], Out: room[first+1:]}
			if err := p.update(&u, a, &all); err != nil {
				return err
			}
		}
		return all.run()
	})
}

// update adds p's update to those that run together, or runs it where its states do not lie
// on the device.
func (p *Param) update(u *Update, a *driver.Args, all *groups) error {
	onHost := p.updatesOnHost(u.States)
	if k, err := driver.Find(u.Kernel, firstType(a), p.dev.backend); err == nil && k.Scaled && !onHost {
		a.Scale = p.due
	} else if err := p.settle(); err != nil {
		return err
	}
	switch {
	case onHost:
		on := []*storage{p.st}
		for _, q := range u.States {
			on = append(on, q.st)
		}
		return p.launchOnHost(u.Kernel, a, append(on, p.grad)...)
	case slices.ContainsFunc(u.States, func(q *Param) bool { return q.streamed() }):
		at, back, err := p.dev.stage.bring(u.States)
		copy(a.Out[1:], at)
		if err == nil {
			err = p.launch(u.Kernel, a)
		}
		return join.Errors(err, back())
	}
	return all.add(u.Kernel, p, a)
}

// GradNorms are those of parameters that have gradients. It waits once a device; a norm is
// not finite if an element is not. A dry run has 0.
func GradNorms(ps []*Param) ([]float64, error) {
	norms := make([]float64, len(ps))
	err := together(ps, func() error {
		devices := map[*Device][]int{}
		for i, p := range ps {
			devices[p.dev] = append(devices[p.dev], i)
		}
		var err error
		for d, mine := range devices {
			err = join.Errors(err, d.squareSums(ps, norms, mine))
		}
		return err
	})
	for i, n := range norms {
		norms[i] = math.Sqrt(n)
	}
	return norms, err
}

// squareSums are of the gradients whose numbers are given.
func (d *Device) squareSums(ps []*Param, sums []float64, mine []int) error {
	own := make([]float64, len(mine))
	mem := driver.Bytes(own)
	if d.apart { // its kernels write to its own memory
		b, err := d.mem.Alloc(memory.Request{Bytes: int64(len(mem)), Category: memory.Workspace, Owner: d.here("square sum", ps[mine[0]])})
		if err != nil {
			return fmt.Errorf("%s: %w", ps[mine[0]].name, err)
		}
		defer d.mem.Free(b)
		mem = b.Bytes()
	}
	as, room := make([]driver.Args, len(mine)), make([]driver.Array, 0, 2*len(mine))
	var all groups
	for k, i := range mine {
		sum := driver.Array{Type: Float64}
		if d.values {
			sum.Data = mem[8*k : 8*k+8]
		}
		if err := ps[i].settle(); err != nil {
			return err
		}
		room = append(room, ps[i].array(ps[i].grad), sum)
		as[k] = driver.Args{In: room[2*k : 2*k+1], Out: room[2*k+1:]}
		if err := all.add("square sum", ps[i], &as[k]); err != nil {
			return err
		}
	}
	err := all.run()
	if err == nil && d.card != nil {
		err = d.card.Download(driver.Bytes(own), mem)
	}
	for k, i := range mine {
		sums[i] = own[k]
	}
	return err
}

// groups are kernels' arguments, those of one kernel together.
type groups []group

type group struct {
	kernel string
	dtype  DType
	k      driver.Kernel
	first  *Param
	as     []*driver.Args
}

func (g *groups) add(kernel string, p *Param, a *driver.Args) error {
	dtype := firstType(a)
	for i := range *g {
		if o := &(*g)[i]; o.kernel == kernel && o.dtype == dtype && o.first.dev == p.dev {
			o.as = append(o.as, a)
			return nil
		}
	}
	k, err := p.kernel(kernel, a)
	if err == nil {
		*g = append(*g, group{kernel, dtype, k, p, []*driver.Args{a}})
	}
	return err
}

// run allocates what all arguments of a group need to work in, as one block.
func (g groups) run() error {
	for _, o := range g {
		if err := o.first.dev.launchAll(o.k, o.as, o.first.workspace(o.kernel)); err != nil {
			return err
		}
	}
	return nil
}

// launchAll is launch of a kernel for different arguments.
func (d *Device) launchAll(k driver.Kernel, as []*driver.Args, work func(bytes int64) (*memory.Block, error)) error {
	if k.Group == nil || len(as) == 1 {
		for _, a := range as {
			if err := d.launch(k, a, d.mem, work); err != nil {
				return err
			}
		}
		return nil
	}
	whole := driver.Kernel{
		Workspace: func(a *driver.Args) (bytes int64) {
			for _, b := range as {
				if b.Threads = a.Threads; k.Workspace != nil {
					bytes += k.Workspace(b)
				}
			}
			return bytes
		},
		Run: func(a *driver.Args) {
			rest := a.Work
			for _, b := range as {
				if b.Queue = a.Queue; k.Workspace != nil {
					n := k.Workspace(b)
					b.Work, rest = rest[:n], rest[n:]
				}
			}
			k.Group(as)
			for _, b := range as {
				a.Err = cmp.Or(a.Err, b.Err)
			}
		},
	}
	return d.launch(whole, new(driver.Args), d.mem, work)
}

var locking sync.Mutex

// together runs fn while no scope reads any of different parameters, but the one whose
// OnGrad this is.
func together(ps []*Param, fn func() error) error {
	if len(ps) > 1 { // else two calls may each wait for what the other has
		locking.Lock()
	}
	for _, p := range ps {
		p.mu.Lock()
	}
	defer func() {
		for _, p := range ps {
			p.mu.Unlock()
		}
	}()
	if len(ps) > 1 {
		locking.Unlock()
	}
	for _, p := range ps {
		if err := p.unused(); err != nil {
			return err
		}
	}
	return fn()
}
