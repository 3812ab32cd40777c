package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/snug-ml/snug/internal/driver"
)

// count is n samples that hold their own number; Read does what fail says first.
type count struct {
	n    int
	fail func(i int) error
}

func (c count) Len() int { return c.n }
func (c count) Spec() Spec {
	return Spec{Shape: []int{1, 2, 2}, Type: driver.Float32}
}
func (c count) Read(i int, x Values, y []int64) error {
	if c.fail != nil {
		if err := c.fail(i); err != nil {
			return err
		}
	}
	for k := range x.F32 {
		x.F32[k] = float32(10*i + k)
	}
	y[0] = int64(i)
	return nil
}

func newLoader(t *testing.T, ds Dataset, c LoaderConfig) *Loader {
	t.Helper()
	l, err := NewLoader(ds, c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rest are copies of the batches that are left in the epoch.
func rest(t *testing.T, l *Loader, size int) (all []Batch) {
	t.Helper()
	for b, err := range l.Batches(t.Context(), size) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Clone())
	}
	return all
}

func labels(all []Batch) (y []int64) {
	for _, b := range all {
		y = append(y, b.Y...)
	}
	return y
}

func TestOrder(t *testing.T) {
	l := newLoader(t, count{n: 7}, LoaderConfig{})
	all := rest(t, l, 3)
	if got := labels(all); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("got %v", got)
	}
	last := all[2]
	if last.Len() != 1 || !slices.Equal(last.Shape, []int{1, 1, 2, 2}) || !slices.Equal(last.Target, []int{1}) || !slices.Equal(last.X.F32, []float32{60, 61, 62, 63}) {
		t.Errorf("last batch %+v", last)
	}
	if got := l.State(); got != (LoaderState{1, 0}) {
		t.Errorf("after the epoch: %+v", got)
	}

	l = newLoader(t, count{n: 7}, LoaderConfig{DropLast: true})
	if got := labels(rest(t, l, 3)); len(got) != 6 {
		t.Errorf("without the last: %v", got)
	}
	if got := l.State(); got != (LoaderState{1, 0}) {
		t.Errorf("after the epoch without the last: %+v", got)
	}
}

// Each epoch has every sample once, in an order that only seed and epoch decide.
func TestShuffle(t *testing.T) {
	c := LoaderConfig{Seed: 1, Shuffle: true}
	a, b := newLoader(t, count{n: 50}, c), newLoader(t, count{n: 50}, c)
	first, second := labels(rest(t, a, 8)), labels(rest(t, a, 8))
	if slices.Equal(first, second) {
		t.Error("two epochs have one order")
	}
	for i, v := range slices.Sorted(slices.Values(first)) {
		if int(v) != i {
			t.Fatalf("epoch has %v", first)
		}
	}
	if err := b.SetState(LoaderState{Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	if got := labels(rest(t, b, 3)); !slices.Equal(got, second) {
		t.Errorf("epoch 1 is %v, reached through epoch 0 it is %v", got, second)
	}
	// Saved positions mean the same in every version of this module, and of Go.
	five := labels(rest(t, newLoader(t, count{n: 5}, c), 5))
	if want := []int64{1, 3, 4, 2, 0}; !slices.Equal(five, want) {
		t.Errorf("5 samples are in order %v, want %v", five, want)
	}
}

// Neither order nor contents depend on the workers, with augmentation and with buffers
// that are used again.
func TestWorkers(t *testing.T) {
	var want []Batch
	for _, workers := range []int{0, 1, 3, 16} {
		l := newLoader(t, Shapes(100, 1), LoaderConfig{Seed: 2, Shuffle: true, Workers: workers, Augment: []Augment{Crop(3), Flip()}})
		got := append(rest(t, l, 7), rest(t, l, 9)...)
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers give other batches than none", workers)
		}
	}
	if slices.Equal(want[0].X.U8, want[15].X.U8) {
		t.Error("both epochs have the same pixels")
	}
}

// From every position on, a loader gives what the saved one would have given, with other
// batch sizes too.
func TestResume(t *testing.T) {
	c := LoaderConfig{Seed: 3, Shuffle: true, Workers: 2}
	l := newLoader(t, count{n: 20}, c)
	var given []int64
	for range 2 {
		for b, err := range l.Batches(t.Context(), 6) {
			if err != nil {
				t.Fatal(err)
			}
			given = append(given, b.Y...)
			saved, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			other := newLoader(t, count{n: 20}, c)
			if err := json.Unmarshal(saved, other); err != nil {
				t.Fatal(err)
			}
			want := given
			for other.State().Epoch < 2 {
				want = append(slices.Clip(want), labels(rest(t, other, 5))...)
			}
			if len(want) != 40 {
				t.Fatalf("after %d, resumed at %s: %d samples in two epochs, want 40", len(given), saved, len(want))
			}
			full := newLoader(t, count{n: 20}, c)
			if all := append(labels(rest(t, full, 20)), labels(rest(t, full, 20))...); !slices.Equal(want, all) {
				t.Fatalf("after %d, resumed at %s: %v, want %v", len(given), saved, want, all)
			}
		}
	}
}

// A loop that is left goes on with the batch after the one that it had.
func TestBreak(t *testing.T) {
	l := newLoader(t, count{n: 6}, LoaderConfig{Workers: 3})
	for range l.Batches(t.Context(), 2) {
		break
	}
	if got := labels(rest(t, l, 2)); !slices.Equal(got, []int64{2, 3, 4, 5}) {
		t.Errorf("got %v", got)
	}
}

// However a loop ends, no goroutine outlives it: synctest fails where one does.
func TestLeavesNoGoroutine(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]func(l *Loader){
		"break": func(l *Loader) {
			for range l.Batches(context.Background(), 2) {
				break
			}
		},
		"panic": func(l *Loader) {
			defer func() { recover() }()
			for range l.Batches(context.Background(), 2) {
				panic(broken)
			}
		},
		"cancel": func(l *Loader) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			var last error
			n := 0
			for _, err := range l.Batches(ctx, 2) {
				cancel(broken)
				last = err
				n++
			}
			if !errors.Is(last, broken) || n != 2 {
				t.Errorf("cancelled: %d rounds, the last with %v", n, last)
			}
		},
		"never begun": func(l *Loader) { l.Batches(context.Background(), 2) },
		"whole epoch": func(l *Loader) {
			for range l.Batches(context.Background(), 2) {
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end(newLoader(t, count{n: 100}, LoaderConfig{Workers: 4}))
			})
		})
	}
}

// The first bad sample in order is the error, whichever worker meets one first; what
// comes before it is given, and the position stays before its batch.
func TestSampleError(t *testing.T) {
	broken := errors.New("broken")
	for _, workers := range []int{0, 4} {
		l := newLoader(t, count{n: 20, fail: func(i int) error {
			if i == 7 || i == 9 {
				return broken
			}
			return nil
		}}, LoaderConfig{Workers: workers})
		var given int
		var got error
		for b, err := range l.Batches(t.Context(), 2) {
			given += b.Len()
			got = err
		}
		if given != 6 || !errors.Is(got, broken) || !strings.Contains(got.Error(), "sample 7") {
			t.Errorf("%d workers: %d samples, then %v", workers, given, got)
		}
		if s := l.State(); s != (LoaderState{0, 6}) {
			t.Errorf("%d workers: position %+v", workers, s)
		}
	}
}

// A panic of the dataset comes out where the loop is, not in a worker.
func TestSamplePanic(t *testing.T) {
	for _, workers := range []int{0, 2} {
		l := newLoader(t, count{n: 4, fail: func(int) error { panic("oh no") }}, LoaderConfig{Workers: workers})
		func() {
			defer func() {
				if v := recover(); !strings.Contains(fmt.Sprint(v), "oh no") {
					t.Errorf("%d workers: recovered %v", workers, v)
				}
			}()
			for range l.Batches(t.Context(), 2) {
				t.Error("a batch")
			}
		}()
		if err := l.SetState(LoaderState{}); err != nil {
			t.Errorf("%d workers: afterwards %v", workers, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	images := func(c LoaderConfig) error { _, err := NewLoader(Shapes(4, 1), c); return err }
	_, empty := NewLoader(Shapes(0, 1), LoaderConfig{})
	l := newLoader(t, count{n: 4}, LoaderConfig{DropLast: true})
	batches := func(size int) (err error) {
		for _, err = range l.Batches(t.Context(), size) {
		}
		return err
	}
	var nested, set error
	for range l.Batches(t.Context(), 2) {
		nested, set = batches(2), l.SetState(LoaderState{})
	}
	bad := newLoader(t, label(12), LoaderConfig{})
	var badLabel error
	for _, badLabel = range bad.Batches(t.Context(), 1) {
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{empty, "empty"},
		{images(LoaderConfig{Workers: -1}), "-1 workers"},
		{images(LoaderConfig{Mean: []float32{1, 2}, Std: []float32{1, 2}}), "one a channel"},
		{images(LoaderConfig{Mean: []float32{1}}), "one a channel"},
		{images(LoaderConfig{Mean: []float32{1}, Std: []float32{0}}), "above 0"},
		{batches(0), "batches of 0"},
		{batches(5), "batches of 5 out of 4"}, // with DropLast there is never one
		{nested, "in use"},
		{set, "in use"},
		{l.SetState(LoaderState{0, 5}), "no position"},
		{l.SetState(LoaderState{-1, 0}), "no position"},
		{badLabel, "sample 0: label 12, want 0 to 9"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %v, want …%s…", c.err, c.want)
		}
	}
}

// label is a dataset of one sample with a label out of range.
type label int64

func (l label) Len() int                              { return 1 }
func (l label) Spec() Spec                            { return Spec{Shape: []int{1}, Type: driver.Uint8, Classes: 10} }
func (l label) Read(_ int, _ Values, y []int64) error { y[0] = int64(l); return nil }

func TestSplit(t *testing.T) {
	b := rest(t, newLoader(t, count{n: 5}, LoaderConfig{}), 5)[0]
	var sizes []int
	var y []int64
	for m, last := range b.Split(2) {
		if last != (len(y)+m.Len() == 5) {
			t.Errorf("last is %v after %d and %d", last, len(y), m.Len())
		}
		if m.X.F32[0] != float32(10*m.Y[0]) || len(m.X.F32) != 4*m.Len() || m.Shape[0] != m.Len() || m.Target[0] != m.Len() {
			t.Errorf("micro-batch %+v", m)
		}
		sizes, y = append(sizes, m.Len()), append(y, m.Y...)
	}
	if !slices.Equal(sizes, []int{2, 2, 1}) || !slices.Equal(y, b.Y) {
		t.Errorf("sizes %v with %v", sizes, y)
	}
	for m, last := range b.Split(9) {
		if m.Len() != 5 || !last {
			t.Errorf("split beyond its size: %d, %v", m.Len(), last)
		}
	}
}

func TestAugment(t *testing.T) {
	// Every move of a picture, against one that copies it into a padded one and cuts.
	const h, w = 3, 4
	src := make([]uint8, 2*h*w)
	for i := range src {
		src[i] = uint8(i + 1)
	}
	for dy := -4; dy <= 4; dy++ {
		for dx := -5; dx <= 5; dx++ {
			got := slices.Clone(src)
			shift(got, h, w, dx, dy)
			for i := range got {
				c, y, x := i/(h*w), i/w%h+dy, i%w+dx
				var want uint8
				if y >= 0 && y < h && x >= 0 && x < w {
					want = src[(c*h+y)*w+x]
				}
				if got[i] != want {
					t.Fatalf("moved by (%d %d): element %d is %d, want %d", dx, dy, i, got[i], want)
				}
			}
		}
	}
	row := []float32{1, 2, 3, 4, 5, 6}
	mirror(row, 3)
	if !slices.Equal(row, []float32{3, 2, 1, 6, 5, 4}) {
		t.Errorf("mirrored: %v", row)
	}
	// Crop reaches every place, and Flip both sides.
	places, sides := map[string]bool{}, map[uint8]bool{}
	for i := range uint64(500) {
		r := rand.New(rand.NewPCG(i, 0))
		x := []uint8{0, 0, 0, 0, 1, 0, 0, 0, 0}
		Crop(1)(Values{U8: x}, []int{1, 3, 3}, r)
		places[fmt.Sprint(x)] = true
		x = []uint8{1, 2}
		Flip()(Values{U8: x}, []int{2}, r)
		sides[x[0]] = true
	}
	if len(places) != 9 || len(sides) != 2 {
		t.Errorf("%d places, want 9; %d sides, want 2", len(places), len(sides))
	}
}

func BenchmarkLoader(b *testing.B) {
	l, err := NewLoader(Shapes(1024, 1), LoaderConfig{Shuffle: true, Workers: 2, Augment: []Augment{Crop(2), Flip()}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range l.Batches(b.Context(), 64) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(1024*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}
