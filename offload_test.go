package snug_test

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// aheads are room for no copy, for one or two storages of these tests, and for all.
var aheads = []int64{0, 8 << 10, 1 << 30}

func ahead(bytes int64) snug.Option {
	return offload.Activations(offload.Config{MinBytes: 1, AheadBytes: bytes})
}

// Copies beside the computation change no bit, whatever room they have; what they hold on
// the device is bounded and predicted.
func TestOffloadAhead(t *testing.T) {
	for name, o := range map[string][]snug.Option{
		"": nil, "checkpoint": {checkpoint.Every(2)}, "autocast": {amp.Autocast(snug.BFloat16)},
		"checkpoint, autocast": {checkpoint.Every(1), amp.Autocast(snug.BFloat16)},
	} {
		plain := newRun(t, testdevice.Name, newNet(1), o...)
		steps(t, plain)
		want := plain.bits(t)
		var waiting int64
		for _, bytes := range aheads {
			var stats [2][2]memory.Stats
			for i, device := range []string{testdevice.Dry, testdevice.Name} {
				r := newRun(t, device, newNet(1), append(o[:len(o):len(o)], ahead(bytes))...)
				base := r.dev.Memory().Stats().Allocated
				steps(t, r)
				stats[i] = [2]memory.Stats{r.dev.Memory().Stats(), r.dev.Host().Stats()}
				if m, h := stats[i][0].Allocated-base, stats[i][1].Allocated; m != 0 || h != 0 {
					t.Errorf("%s, %d ahead: %d and %d bytes are left", name, bytes, m, h)
				}
				if device == testdevice.Name {
					if n := differ(want, r.bits(t)); n != 0 {
						t.Errorf("%s, %d ahead: %d values differ", name, bytes, n)
					}
				}
			}
			if stats[0] != stats[1] {
				t.Errorf("%s, %d ahead: predicted %+v\nmeasured %+v", name, bytes, stats[0], stats[1])
			}
			peak := stats[1][0].Peak.Allocated
			if bytes == 0 {
				waiting = peak
			}
			if peak > waiting+bytes || stats[1][1].Peak.Allocated == 0 {
				t.Errorf("%s, %d ahead: peak %d, %d where every copy is waited for", name, bytes, peak, waiting)
			}
			t.Logf("%-20s %10d ahead: peak %d, plain %d, host %d", name, bytes, peak, plain.dev.Memory().Stats().Peak.Allocated, stats[1][1].Peak.Allocated)
		}
	}
}

func steps(t *testing.T, r *run) {
	t.Helper()
	for i := range 2 {
		if err := r.train(64, 2, i); err != nil {
			t.Fatal(err)
		}
	}
}

// Room for copies is taken only where nothing else wants it: what fits without fits with.
func TestOffloadAheadGivesWay(t *testing.T) {
	fits := func(limit, ahead int64) bool {
		d, err := snug.Open(testdevice.Dry, snug.Config{LimitBytes: limit})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		err = d.Train(bg, func(s *snug.Scope) error {
			x := snug.Zeros(s, snug.Float32, 1<<20).Track()
			y := x
			for range 8 {
				y = snug.Block(func(x *snug.Tensor) *snug.Tensor { return x.Tanh().Sigmoid().Tanh() }, y)
			}
			return y.Sum().Backward()
		}, offload.Activations(offload.Config{MinBytes: 1, AheadBytes: ahead}))
		if err != nil && !errors.Is(err, memory.ErrOutOfMemory) {
			t.Fatal(err)
		}
		return err == nil
	}
	least := int64(2 << 20)
	for !fits(least, 0) {
		least += 2 << 20
	}
	for _, bytes := range []int64{4 << 20, 16 << 20, 1 << 30} {
		if !fits(least, bytes) {
			t.Errorf("%d bytes ahead do not fit in %d", bytes, least)
		}
	}
	if least > 48<<20 { // 96 MiB are saved
		t.Errorf("%d bytes are needed", least)
	}
}

// The n-th allocation fails, on the device and on the host. Where that was to bring
// something ahead of its use, nothing is lost: so the sweep goes on after a success.
func TestOffloadAllocationMayFail(t *testing.T) {
	o := []snug.Option{checkpoint.Every(3), ahead(16 << 10)}
	newRun := func() *run {
		r := newRun(t, testdevice.Name, newNet(1), o...)
		if err := r.train(8, 2, 0); err != nil {
			t.Fatal(err)
		}
		return r
	}
	sweep(t, newRun, func(d *snug.Device) *memory.Pool { return d.Memory() }, 1)
	sweep(t, newRun, func(d *snug.Device) *memory.Pool { return d.Host() }, 1)
}

// sweep has every allocation of a pool's fail in turn during the second step, which must
// have the same bits then, or fail and leave all as it was; silent says that some may do
// no harm. In short tests it is every seventh.
func sweep(t *testing.T, newRun func() *run, of func(*snug.Device) *memory.Pool, stride int) {
	t.Helper()
	good := newRun()
	before, base, start := good.bits(t), good.dev.Memory().Stats().Allocated, of(good.dev).Stats().Requests
	if err := good.train(8, 2, 1); err != nil {
		t.Fatal(err)
	}
	count := int(of(good.dev).Stats().Requests - start)
	after := good.bits(t)
	if !full {
		stride *= 7
	}
	failed := 0
	for n := 0; n < count; n += stride {
		r := newRun()
		host := r.dev.Host().Stats().Allocated
		pool := of(r.dev)
		pool.FailAt(n)
		err := r.train(8, 2, 1)
		pool.FailAt(-1)
		want := after
		if err != nil {
			if failed++; !errors.Is(err, memory.ErrOutOfMemory) {
				t.Fatal(n, err)
			}
			if err := r.w.Drop(); err != nil {
				t.Fatal(err)
			}
			want = before
		}
		if d, h := r.dev.Memory().Stats().Allocated-base, r.dev.Host().Stats().Allocated-host; d != 0 || h != 0 {
			t.Fatalf("allocation %d: %d bytes leak, %d on the host: %v", n, d, h, err)
		}
		if d := differ(want, r.bits(t)); d != 0 {
			t.Fatalf("allocation %d: %d values differ: %v", n, d, err)
		}
	}
	if t.Logf("%d of %d allocations failed, in steps of %d", failed, count, stride); failed == 0 {
		t.Error("nothing failed")
	}
}

// A buffer's new value stays, although an operation has saved it.
func TestOffloadAssigned(t *testing.T) {
	d, p := open(t), snug.NewBuffer(snug.Const(1), 64)
	place(t, d, p)
	defer p.Close()
	if err := d.Train(bg, func(s *snug.Scope) error {
		x := ramp(s, 64).Track()
		return snug.Block(func(x *snug.Tensor) *snug.Tensor {
			m := x.Detach().Add(x.Detach())
			p.Assign(m)
			return x.Mul(m)
		}, x).Sum().Backward()
	}, ahead(0)); err != nil {
		t.Fatal(err)
	}
	if v := valuesOf(t, p); v[5] != 2*float64(batch(64, 1, 3)[5]) {
		t.Error(v)
	}
}

// What is read again before backward has not left, or comes back; in-place writes find it
// at rest.
func TestOffloadReadAgain(t *testing.T) {
	for _, bytes := range aheads {
		d := open(t)
		var got [2][]float32
		for i, o := range [][]snug.Option{nil, {ahead(bytes)}} {
			if err := d.Train(bg, func(s *snug.Scope) (err error) {
				x := ramp(s, 32, 32).Track()
				var inner *snug.Tensor
				y := snug.Block(func(x *snug.Tensor) *snug.Tensor {
					inner = x.Tanh().Keep()
					return inner.Sigmoid()
				}, x.Add(x))
				z := snug.Block(func(y *snug.Tensor) *snug.Tensor { return y.Sigmoid().Tanh() }, y)
				w := y.Detach().Tanh()
				w.AddInPlace(y.Detach())
				loss := z.Mul(w).Mul(y).Sum()
				if err := loss.Backward(); err != nil {
					return err
				}
				got[i], err = snug.Download[float32](x.Grad())
				return err
			}, o...); err != nil {
				t.Fatal(bytes, err)
			}
		}
		if fmt.Sprint(got[0]) != fmt.Sprint(got[1]) {
			t.Error(bytes, "other bits")
		}
	}
}

// A file takes what the host's memory would, with the same bits and the same decisions.
func TestOffloadToDisk(t *testing.T) { offloadToDisk(t) }

// So it does where the system maps no files.
func TestOffloadToDiskWithoutMapping(t *testing.T) {
	testdevice.CPU(t, "no such system has a card")
	defer func(maps bool) { host.Maps = maps }(host.Maps)
	host.Maps = false
	offloadToDisk(t)
}

func offloadToDisk(t *testing.T) {
	t.Helper()
	plain := newRun(t, testdevice.Name, newNet(1))
	steps(t, plain)
	dir := t.TempDir()
	for _, bytes := range aheads {
		var stats [2]memory.Stats
		for i, device := range []string{testdevice.Dry, testdevice.Name} {
			r := newRun(t, device, newNet(1), offload.Activations(offload.Config{MinBytes: 1, AheadBytes: bytes, Dir: dir}))
			steps(t, r)
			pool, err := r.dev.Disk(dir)
			if err != nil {
				t.Fatal(err)
			}
			if stats[i] = pool.Stats(); stats[i].Allocated != 0 || stats[i].Peak.Allocated == 0 || r.dev.Host().Stats().Requests != 0 {
				t.Error(device, stats[i])
			}
			if device == testdevice.Name && differ(plain.bits(t), r.bits(t)) != 0 {
				t.Error("other bits")
			}
			if err := r.dev.Close(); err != nil {
				t.Error(err)
			}
		}
		if stats[0] != stats[1] {
			t.Errorf("predicted %+v\nmeasured %+v", stats[0], stats[1])
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Error("files are left:", names, err)
	}
	sweep(t, func() *run {
		r := newRun(t, testdevice.Name, newNet(1), offload.Activations(offload.Config{MinBytes: 1, AheadBytes: 16 << 10, Dir: dir}))
		if err := r.train(8, 2, 0); err != nil {
			t.Fatal(err)
		}
		return r
	}, func(d *snug.Device) *memory.Pool {
		pool, err := d.Disk(dir)
		if err != nil {
			t.Fatal(err)
		}
		return pool
	}, 1)
}

// A directory that is not there, and a disk that is full, are errors that name it.
func TestOffloadDiskFails(t *testing.T) {
	step := func(dir string, rows int, limit int64) error {
		r := newRun(t, testdevice.Dry, newNet(1), offload.Activations(offload.Config{MinBytes: 1, Dir: dir}))
		if limit == 0 {
			r = newRun(t, testdevice.Name, newNet(1), r.opts[0])
		} else if pool, err := r.dev.Disk(dir); err != nil {
			t.Fatal(err)
		} else {
			pool.SetLimit(limit)
		}
		return r.train(rows, 1, 0)
	}
	dir := filepath.Join(t.TempDir(), "none")
	if err := step(dir, 8, 0); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	if err := step(t.TempDir(), 4096, 1<<20); !errors.Is(err, memory.ErrOutOfMemory) {
		t.Error(err)
	}
}

// The state is on the host, and no bit is another, whether it is updated there or streamed.
func TestOffloadState(t *testing.T) {
	plain := newRun(t, testdevice.Name, newNet(1))
	steps(t, plain)
	want, size := plain.bits(t), plain.dev.Memory().Stats().Categories[memory.OptimizerState]
	for _, at := range []offload.Place{offload.OnHost, offload.Streamed} {
		var stats [2][2]memory.Stats
		for i, device := range []string{testdevice.Dry, testdevice.Name} {
			r := newRunAt(t, device, newNet(1), at)
			steps(t, r)
			d, h := r.dev.Memory().Stats(), r.dev.Host().Stats()
			stats[i] = [2]memory.Stats{d, h}
			if n := d.Peak.Allocated; d.Categories[memory.OptimizerState] != 0 || h.Categories[memory.OptimizerState] != size || n >= plain.dev.Memory().Stats().Peak.Allocated-size/2 {
				t.Errorf("%s, %v: %d bytes of state on the device, %d on the host, want 0 and %d; peak %d", device, at, d.Categories[memory.OptimizerState], h.Categories[memory.OptimizerState], size, n)
			}
			if stage := d.Categories[memory.Workspace]; (stage == 2*32*32*4) != (at == offload.Streamed) {
				t.Errorf("%v: a stage of %d bytes", at, stage)
			}
			if device != testdevice.Name {
			} else if got := r.bits(t); at == offload.OnHost && device != "cpu" { // the CPU rounds in other places
				if d := distance(got, want); !(d <= 1e-5) {
					t.Errorf("%v: %g from the plain run", at, d)
				}
			} else if differ(want, got) != 0 {
				t.Errorf("%v: other bits", at)
			}
			if err := errors.Join(r.o.Close(), nn.Close(r.m)); err != nil {
				t.Fatal(err)
			}
			if d, h := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated; d != 0 || h != 0 {
				t.Errorf("%v: %d and %d bytes are left", at, d, h)
			}
		}
		if stats[0] != stats[1] {
			t.Errorf("%v: predicted %+v\nmeasured %+v", at, stats[0], stats[1])
		}
	}
}

// newRunAt is newRun with the optimizer's state elsewhere.
func newRunAt(t *testing.T, device string, m nn.Layer, at offload.Place, o ...snug.Option) *run {
	t.Helper()
	r := newRun(t, device, m, o...)
	if err := r.o.Close(); err != nil {
		t.Fatal(err)
	}
	r.dev.Memory().ResetPeak()
	offload.State(r.dev, at)
	var err error
	if r.o, err = optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	r.w = optim.NewWindow(r.o, optim.WindowConfig{})
	return r
}

// Making the optimizer fails whole, wherever memory is short.
func TestOffloadStateAllOrNothing(t *testing.T) {
	d, m := open(t), newNet(1)
	if err := nn.Init(bg, d, m, nil); err != nil {
		t.Fatal(err)
	}
	base := d.Memory().Stats().Allocated
	offload.State(d, offload.Streamed)
	for _, pool := range []*memory.Pool{d.Memory(), d.Host()} {
		failed := 0
		for n := 0; ; n++ {
			pool.FailAt(n)
			o, err := optim.NewAdamW(nn.Params(m), optim.DefaultAdamW())
			pool.FailAt(-1)
			if err == nil {
				o.Close()
				break
			}
			if failed++; !errors.Is(err, memory.ErrOutOfMemory) {
				t.Fatal(err)
			}
			if d, h := d.Memory().Stats().Allocated-base, d.Host().Stats().Allocated; d != 0 || h != 0 {
				t.Fatalf("allocation %d: %d and %d bytes are left", n, d, h)
			}
		}
		if failed == 0 {
			t.Error("nothing failed")
		}
	}
	if n := d.Memory().Stats().Allocated; n != base {
		t.Errorf("%d bytes are left", n-base)
	}
}

// awayRun has the parameters on the host, all of them or those of the blocks.
func awayRun(t *testing.T, device string, o ...snug.Option) *run {
	t.Helper()
	m := newNet(1)
	d, err := snug.Open(device, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r := &run{dev: d, rng: snug.NewRand(7), m: m}
	if err := offload.Params(nn.Params(m)); err != nil { // before: they are never on the device
		t.Fatal(err)
	}
	if err := nn.Init(bg, d, m, r.rng); err != nil {
		t.Fatal(err)
	}
	if n := d.Memory().Stats().Categories[memory.Parameters]; n != 0 {
		t.Errorf("%d bytes of parameters on the device", n)
	}
	if r.o, err = optim.NewAdamW(nn.Params(m), optim.DefaultAdamW()); err != nil {
		t.Fatal(err)
	}
	r.w, r.opts = optim.NewWindow(r.o, optim.WindowConfig{}), append(o, snug.Random(r.rng))
	return r
}

// Parameters on the host are on the device a block at a time, and no bit is another.
func TestOffloadParams(t *testing.T) {
	const block = 2*(32*32*4+512) + 2*512 // of one: two dense layers, and two scales
	for name, o := range map[string][]snug.Option{
		"": nil, "ahead": {ahead(8 << 10)}, "checkpoint": {checkpoint.Every(1)}, "autocast": {amp.Autocast(snug.BFloat16)},
		"all": {checkpoint.Every(2), amp.Autocast(snug.BFloat16), ahead(8 << 10)},
	} {
		for _, step := range []func(*optim.Window, *snug.Tensor, float64) error{nil, backwardStep} {
			plain := newRun(t, testdevice.Name, newNet(1), o...)
			plain.step = step
			steps(t, plain)
			var stats [2][2]memory.Stats
			for i, device := range []string{testdevice.Dry, testdevice.Name} {
				r := awayRun(t, device, o...)
				r.step = step
				base := r.dev.Memory().Stats().Allocated
				steps(t, r)
				d := r.dev.Memory().Stats()
				stats[i] = [2]memory.Stats{d, r.dev.Host().Stats()}
				if d.Allocated != base {
					t.Errorf("%s: %d bytes are left", name, d.Allocated-base)
				}
				if n := d.AtPeak[memory.Parameters]; n > 2*block {
					t.Errorf("%s: %d bytes of parameters at the peak, a block has %d", name, n, block)
				}
				if device == testdevice.Name {
					if n := differ(plain.bits(t), r.bits(t)); n != 0 {
						t.Errorf("%s: %d values differ", name, n)
					}
				}
			}
			if stats[0] != stats[1] {
				t.Errorf("%s: predicted %+v\nmeasured %+v", name, stats[0], stats[1])
			}
			t.Logf("%-12s parameters at the peak %d of %d, peak %d, plain %d", name, stats[1][0].AtPeak[memory.Parameters],
				plain.dev.Memory().Stats().Categories[memory.Parameters], stats[1][0].Peak.Allocated, plain.dev.Memory().Stats().Peak.Allocated)
		}
	}
}

func TestOffloadParamsAllocationMayFail(t *testing.T) {
	sweep(t, func() *run {
		r := awayRun(t, testdevice.Name, checkpoint.Every(3), ahead(8<<10), amp.Autocast(snug.BFloat16))
		if err := r.train(8, 2, 0); err != nil {
			t.Fatal(err)
		}
		return r
	}, func(d *snug.Device) *memory.Pool { return d.Memory() }, 2)
}

// Placed parameters move all or none, with their values, and may be read and set there.
func TestOffloadParamsMove(t *testing.T) {
	d, m := open(t), newNet(1)
	if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	before, base := valuesOf(t, m.FC.W), d.Memory().Stats().Categories[memory.Parameters]
	for n := range 5 {
		d.Host().FailAt(n)
		err := offload.Params(nn.Params(m))
		if d.Host().FailAt(-1); !errors.Is(err, memory.ErrOutOfMemory) {
			t.Fatal(err)
		}
		if a, b := d.Memory().Stats().Categories[memory.Parameters], d.Host().Stats().Allocated; a != base || b != 0 {
			t.Fatal(a, base, b)
		}
	}
	if err := d.Infer(bg, func(s *snug.Scope) error {
		m.FC.W.In(s)
		if err := offload.Params(nn.Params(m)); !errors.Is(err, snug.ErrInUse) {
			t.Error(err)
		}
		return nil
	}); err != nil || d.Host().Stats().Allocated != 0 {
		t.Fatal(err)
	}
	for range 2 { // again changes nothing
		if err := offload.Params(nn.Params(m)); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := d.Memory().Stats().Categories[memory.Parameters], d.Host().Stats().Allocated; a != 0 || b != base {
		t.Error(a, b, base)
	}
	if !slices.Equal(before, valuesOf(t, m.FC.W)) {
		t.Error("other values")
	}
	v := batch(32*8, 1, 9)
	if err := snug.SetParam(m.FC.W, v); err != nil {
		t.Fatal(err)
	}
	other := newNet(1)
	if err := nn.Init(bg, d, other, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nn.Lerp(other, m, 0.5), nn.Lerp(m, other, 1)); err != nil {
		t.Fatal(err)
	}
	if got, err := snug.GetParam[float32](m.FC.W); err != nil || got[7] != v[7]/2 {
		t.Error(err, got[7], v[7])
	}
	if err := errors.Join(nn.Close(m), nn.Close(other)); err != nil {
		t.Fatal(err)
	}
	if a, b := d.Memory().Stats().Allocated, d.Host().Stats().Allocated; a != 0 || b != 0 {
		t.Error(a, b)
	}
}

// A value that a scope has read is not read again once OnGrad has updated it on the host.
func TestOffloadParamsUpdated(t *testing.T) {
	r := awayRun(t, testdevice.Name)
	err := r.dev.Train(bg, func(s *snug.Scope) error {
		l := mse(r.m.Forward(ramp(s, 8, 24)), ramp(s, 8, 8))
		if _, err := r.w.BackwardStep(l, 8); err != nil {
			return err
		}
		_, err := snug.Download[float32](r.m.(*net).FC.W.In(s))
		return err
	}, r.opts...)
	if err == nil || !strings.Contains(err.Error(), "written by adam") {
		t.Error(err)
	}
}

// From the second time on, parameters come before the Block that reads them, as far as there
// is room: in forward, in inference, and in the second run of a recomputed Block.
func TestOffloadParamsAhead(t *testing.T) {
	type chain struct{ Layers []*nn.Linear }
	for _, c := range []struct {
		name  string
		ahead int64
		train bool
		opts  []snug.Option
		want  [2][]int64 // layers on the device while each runs, the first time and then
	}{
		{"waiting", 0, false, nil, [2][]int64{{1, 1, 1, 1}, {1, 1, 1, 1}}},
		{"one ahead", 5 << 10, false, nil, [2][]int64{{1, 1, 1, 1}, {2, 2, 2, 1}}},
		{"all", 1 << 20, false, nil, [2][]int64{{1, 1, 1, 1}, {4, 3, 2, 1}}},
		{"training", 5 << 10, true, nil, [2][]int64{{1, 1, 1, 1}, {2, 2, 2, 1}}},
		// Its second run comes when all have been read once, and is for its own layers.
		{"recomputed", 5 << 10, true, []snug.Option{checkpoint.Every(1)}, [2][]int64{{1, 1, 1, 1, 2, 2, 2, 1}, {2, 2, 2, 1, 2, 2, 2, 1}}},
	} {
		var got [2][2][]int64
		for i, device := range []string{testdevice.Dry, testdevice.Name} {
			d, err := snug.Open(device, snug.Config{})
			if err != nil {
				t.Fatal(err)
			}
			m := &chain{}
			for range 4 {
				m.Layers = append(m.Layers, nn.NewLinear(32, 32, false))
			}
			if err := errors.Join(offload.Params(nn.Params(m)), nn.Init(bg, d, m, snug.NewRand(1))); err != nil {
				t.Fatal(err)
			}
			host := d.Host().Stats().Allocated
			var values [2][]float32
			for k := range 2 {
				if err := optim.Zero(nn.Params(m)); err != nil {
					t.Fatal(err)
				}
				start := d.Infer
				if c.train {
					start = d.Train
				}
				if err := start(bg, func(s *snug.Scope) (err error) {
					y := ramp(s, 4, 32)
					run := func(l *nn.Linear) func(x *snug.Tensor) *snug.Tensor {
						return func(x *snug.Tensor) *snug.Tensor {
							x = l.Forward(x)
							got[i][k] = append(got[i][k], d.Memory().Stats().Categories[memory.Parameters]/(32*32*4))
							return x.Tanh()
						}
					}
					if len(c.opts) > 0 { // one Block around all
						y = snug.Block(func(x *snug.Tensor) *snug.Tensor {
							for _, l := range m.Layers {
								x = snug.Block(run(l), x)
							}
							return x
						}, y)
					} else {
						for _, l := range m.Layers {
							y = snug.Block(run(l), y)
						}
					}
					if device == testdevice.Name {
						if values[k], err = snug.Download[float32](y); err != nil {
							return err
						}
					}
					if !c.train {
						return nil
					}
					return y.Sum().Backward()
				}, append(c.opts, offload.Activations(offload.Config{MinBytes: 1 << 40, AheadBytes: c.ahead}))...); err != nil {
					t.Fatal(c.name, err)
				}
				if n := d.Memory().Stats().Categories[memory.Parameters]; n != 0 || d.Host().Stats().Allocated != host {
					t.Errorf("%s: %d bytes of parameters stay", c.name, n)
				}
				if want := c.want[k]; !slices.Equal(got[i][k], want) {
					t.Errorf("%s on %s, run %d: %v layers on the device, want %v", c.name, device, k, got[i][k], want)
				}
			}
			if !slices.Equal(values[0], values[1]) {
				t.Errorf("%s: other bits", c.name)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// gradsRun has gradients wait on the host, beside the state or alone.
func gradsRun(t *testing.T, device string, at offload.Place, o ...snug.Option) *run {
	t.Helper()
	r := newRunAt(t, device, newNet(1), at, o...)
	offload.Grads(nn.Params(r.m))
	return r
}

// Gradients that are final are on the host, over micro-batches, and no bit is another; where
// they are clipped, read or added to, too.
func TestOffloadGrads(t *testing.T) {
	for name, c := range map[string]struct {
		at   offload.Place
		step func(*optim.Window, *snug.Tensor, float64) error
		clip float64
		o    []snug.Option
	}{
		"alone":          {offload.OnDevice, nil, 0, nil},
		"ahead":          {offload.OnDevice, nil, 0.1, []snug.Option{ahead(8 << 10)}},
		"state, clipped": {offload.OnHost, nil, 0.1, []snug.Option{checkpoint.Every(2), ahead(1 << 20)}},
		"streamed":       {offload.Streamed, nil, 0, []snug.Option{amp.Autocast(snug.BFloat16)}},
		"backward step":  {offload.OnHost, backwardStep, 0, []snug.Option{checkpoint.Every(1)}},
	} {
		if testdevice.Name != "cpu" && c.at == offload.OnHost {
			continue // it rounds in other places
		}
		window := optim.WindowConfig{ClipNorm: c.clip}
		plain := newRun(t, testdevice.Name, newNet(1), c.o...)
		plain.step, plain.w = c.step, optim.NewWindow(plain.o, window)
		steps(t, plain)
		var stats [2][2]memory.Stats
		for i, device := range []string{testdevice.Dry, testdevice.Name} {
			r := gradsRun(t, device, c.at, c.o...)
			r.step, r.w = c.step, optim.NewWindow(r.o, window)
			base, host := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated
			steps(t, r)
			stats[i] = [2]memory.Stats{r.dev.Memory().Stats(), r.dev.Host().Stats()}
			if stats[i][0].Allocated != base || stats[i][1].Allocated != host {
				t.Errorf("%s: bytes are left", name)
			}
			if device == testdevice.Name && differ(plain.bits(t), r.bits(t)) != 0 {
				t.Errorf("%s: other bits", name)
			}
			// After a micro-batch they are there, and one moves back to be read.
			if err := r.micro(32, 1, plainBackward); err != nil {
				t.Fatal(err)
			}
			d, h := r.dev.Memory().Stats(), r.dev.Host().Stats()
			if d.Categories[memory.Gradients] != 0 || h.Categories[memory.Gradients] < d.Categories[memory.Parameters] {
				t.Errorf("%s: %d bytes of gradients on the device, %d on the host", name, d.Categories[memory.Gradients], h.Categories[memory.Gradients])
			}
			if err := r.w.Drop(); err != nil || r.dev.Host().Stats().Allocated != host {
				t.Error(name, err)
			}
		}
		if stats[0] != stats[1] {
			t.Errorf("%s: predicted %+v\nmeasured %+v", name, stats[0], stats[1])
		}
		if p, q := stats[1][0].AtPeak[memory.Gradients], plain.dev.Memory().Stats().AtPeak[memory.Gradients]; p > q/2 && c.step == nil && c.o == nil {
			t.Errorf("%s: %d bytes of gradients at the peak, plainly %d", name, p, q)
		}
	}
}

// Two losses in one scope, and a gradient that is read and changed between them.
func TestOffloadGradsInOneScope(t *testing.T) {
	for _, bytes := range aheads {
		var got [2][]float32
		for i := range got {
			d := open(t)
			l := newDense(8, 8)
			if err := nn.Init(bg, d, l, snug.NewRand(1)); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				offload.Grads(nn.Params(l))
			}
			if err := d.Train(bg, func(s *snug.Scope) error {
				for k := range 3 {
					if err := mse(l.Forward(ramp(s, 4, 8)), ramp(s, 4, 8)).Backward(); err != nil {
						return err
					}
					if k < 2 {
						l.W.Grad(s).MulScalarInPlace(0.5)
					}
				}
				return nil
			}, ahead(bytes)); err != nil {
				t.Fatal(err)
			}
			if err := d.Infer(bg, func(s *snug.Scope) (err error) {
				got[i], err = snug.Download[float32](l.W.Grad(s))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := optim.Zero(nn.Params(l)); err != nil || d.Memory().Stats().Categories[memory.Gradients]+d.Host().Stats().Allocated != 0 {
				t.Error(err, d.Memory().Stats().Categories[memory.Gradients], d.Host().Stats().Allocated)
			}
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%d ahead: other bits", bytes)
		}
	}
}

func TestOffloadGradsAllocationMayFail(t *testing.T) {
	newRun := func() *run {
		r := gradsRun(t, testdevice.Name, offload.OnHost, checkpoint.Every(2), ahead(8<<10))
		if err := r.train(8, 2, 0); err != nil {
			t.Fatal(err)
		}
		return r
	}
	sweep(t, newRun, func(d *snug.Device) *memory.Pool { return d.Memory() }, 1)
	sweep(t, newRun, func(d *snug.Device) *memory.Pool { return d.Host() }, 1)
}

// Step allocates nothing, wherever state and gradients are: what it works in is there from
// when the optimizer is made, on a device whose memory is its own, too.
func TestOffloadStepAllocatesNothing(t *testing.T) {
	for _, device := range []string{"dry:cuda", testdevice.Name} {
		for name, make := range map[string]func(iter.Seq2[string, *snug.Param]) (optim.Optimizer, error){
			"adamw": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				return optim.NewAdamW(p, optim.DefaultAdamW())
			},
			"8 bits": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				c := optim.DefaultAdamW()
				c.StateDType = snug.Uint8
				return optim.NewAdamW(p, c)
			},
			"adafactor": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				return optim.NewAdafactor(p, optim.DefaultAdafactor())
			},
			"sgd": func(p iter.Seq2[string, *snug.Param]) (optim.Optimizer, error) {
				return optim.NewSGD(p, optim.DefaultSGD())
			},
		} {
			for _, at := range []offload.Place{offload.OnDevice, offload.OnHost, offload.Streamed} {
				for _, grads := range []bool{false, true} {
					r := newRun(t, device, newNet(1))
					if err := r.o.Close(); err != nil {
						t.Fatal(err)
					}
					before, beforeHost := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated
					offload.State(r.dev, at)
					o, err := make(nn.Params(r.m))
					if err != nil {
						t.Fatal(err)
					}
					if grads {
						offload.Grads(nn.Params(r.m))
					}
					r.o, r.w = o, optim.NewWindow(o, optim.WindowConfig{})
					if err := r.micro(8, 1, plainBackward); err != nil {
						t.Fatal(err)
					}
					d, h := r.dev.Memory().Stats(), r.dev.Host().Stats()
					if _, err := r.w.Step(); err != nil {
						t.Fatal(err)
					}
					if a, b := r.dev.Memory().Stats().Requests-d.Requests, r.dev.Host().Stats().Requests-h.Requests; a != 0 || b != 0 {
						t.Errorf("%s on %s, %v, gradients on the host %t: %d and %d allocations", name, device, at, grads, a, b)
					}
					if err := o.Close(); err != nil {
						t.Fatal(err)
					}
					if a, b := r.dev.Memory().Stats().Allocated, r.dev.Host().Stats().Allocated; a != before || b != beforeHost {
						t.Errorf("%s on %s, %v: %d and %d bytes are left", name, device, at, a-before, b-beforeHost)
					}
				}
			}
		}
	}
}

// Parameters, and their casts, are no activations: they stay, although products save them.
func TestOffloadLeavesParameters(t *testing.T) {
	for name, o := range map[string][]snug.Option{"": nil, "autocast": {amp.Autocast(snug.BFloat16)}} {
		d, l := open(t), newDense(256, 256)
		if err := nn.Init(bg, d, l, snug.NewRand(1)); err != nil {
			t.Fatal(err)
		}
		if err := d.Train(bg, func(s *snug.Scope) error {
			x := ramp(s, 4, 256).Track()
			y := snug.Block(l.Forward, x)
			if h := d.Host().Stats().Allocated; h == 0 || h >= 256*256*2 {
				t.Errorf("%s: %d bytes on the host", name, h)
			}
			return y.Sum().Backward()
		}, append(o, ahead(0))...); err != nil {
			t.Fatal(err)
		}
	}
}
