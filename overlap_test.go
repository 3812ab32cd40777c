package snug

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/snug-ml/snug/internal/testdevice"
)

// Every pair of random views agrees with what marking their elements says.
func TestOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	elements := func(t *Tensor) map[int]bool {
		at := map[int]bool{t.off: true}
		for i, d := range t.shape {
			next := map[int]bool{}
			for off := range at {
				for k := range d {
					next[off+k*t.strides[i]] = true
				}
			}
			at = next
		}
		return at
	}
	seen := map[bool]int{}
	for range 20000 {
		var v [2]*Tensor
		for i := range v {
			v[i] = &Tensor{off: r.IntN(12)}
			for range r.IntN(4) {
				v[i].shape = append(v[i].shape, r.IntN(5))
				v[i].strides = append(v[i].strides, r.IntN(9))
			}
		}
		want := false
		a, b := elements(v[0]), elements(v[1])
		for off := range a {
			want = want || b[off]
		}
		if got := overlap(v[0], v[1]); got != want {
			t.Fatalf("%v %v +%d and %v %v +%d: %v, want %v", v[0].shape, v[0].strides, v[0].off, v[1].shape, v[1].strides, v[1].off, got, want)
		}
		seen[want]++
	}
	if seen[true] < 1000 || seen[false] < 1000 {
		t.Error("one-sided test:", seen)
	}
}

func TestOverlappingWrites(t *testing.T) {
	d, err := Open(testdevice.Name, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, c := range map[string]struct {
		f  func(x *Tensor) *Tensor
		ok bool
	}{
		"itself":        {func(x *Tensor) *Tensor { return x.AddInPlace(x) }, true},
		"other column":  {func(x *Tensor) *Tensor { return x.Narrow(1, 0, 1).AddInPlace(x.Narrow(1, 2, 1)) }, true},
		"other half":    {func(x *Tensor) *Tensor { return x.Slice(All, Range{To: 2}).MulInPlace(x.Slice(All, Range{From: 2})) }, true},
		"shifted":       {func(x *Tensor) *Tensor { return x.Narrow(1, 0, 3).AddInPlace(x.Narrow(1, 1, 3)) }, false},
		"its transpose": {func(x *Tensor) *Tensor { return x.AddInPlace(x.T()) }, false},
		"a row of it":   {func(x *Tensor) *Tensor { return x.SubInPlace(x.Narrow(0, 1, 1)) }, false},
		"expanded":      {func(x *Tensor) *Tensor { return x.Narrow(0, 0, 1).Expand(4, 4).SigmoidInPlace() }, false},
	} {
		err := d.Infer(context.Background(), func(s *Scope) error {
			c.f(Full(s, 2, Float32, 4, 4))
			return nil
		})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
