package snug_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/offload"
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

// Host memory, which is pinned on a card, is asked for in the first step and used again in
// the others: no more is taken, and of a step's nothing stays in use.
func TestOffloadUsesHostMemoryAgain(t *testing.T) {
	dir := t.TempDir()
	for _, bytes := range aheads {
		for _, file := range []string{"", dir} {
			r := newRun(t, testdevice.Name, newNet(1), offload.Activations(offload.Config{MinBytes: 1, AheadBytes: bytes, Dir: file}))
			pool := r.dev.Host()
			if file != "" {
				var err error
				if pool, err = r.dev.Disk(file); err != nil {
					t.Fatal(err)
				}
			}
			var first memory.Stats
			for i := range 6 {
				if err := r.train(64, 2, i); err != nil {
					t.Fatal(err)
				}
				s := pool.Stats()
				if i == 0 {
					first = s
				}
				if s.Allocated != 0 || s.Reserved == 0 || s.Total.Reserved != first.Total.Reserved || s.Total.Segments != first.Total.Segments {
					t.Errorf("%d ahead, step %d: %d bytes in use, %d taken so far in %d pieces, by the first step %d in %d", bytes, i,
						s.Allocated, s.Total.Reserved, s.Total.Segments, first.Total.Reserved, first.Total.Segments)
				}
				if i > 0 && s.Total.Allocated <= first.Total.Allocated {
					t.Errorf("%d ahead, step %d sends nothing", bytes, i)
				}
			}
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
