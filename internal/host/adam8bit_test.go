package host

import (
	"math"
	"slices"
	"testing"
)

// The values are those that the papers' description gives: a sign, zeros for the power of
// ten, a one, and a linear part.
func TestCode8(t *testing.T) {
	for _, c := range []struct {
		code   *code8
		signed bool
		bits   int
	}{{signedCode, true, 7}, {unsignedCode, false, 8}} {
		var want []float64
		for b := range 1 << c.bits { // read bit by bit, from the left
			zeros := 0
			for zeros < 7 && b>>(c.bits-1-zeros)&1 == 0 {
				zeros++
			}
			if zeros == 7 {
				continue // no one among the first seven: they are 0 and 1
			}
			left := c.bits - 1 - zeros
			part := (float64(b&(1<<left-1)) + 0.5) / float64(int(1)<<left)
			v := (0.1 + 0.9*part) / math.Pow(10, float64(zeros))
			if want = append(want, v); c.signed {
				want = append(want, -v)
			}
		}
		want = append(want, 0, 1)
		slices.Sort(want)
		var got []float64
		for _, v := range c.code.values {
			got = append(got, float64(v))
		}
		slices.Sort(got)
		if len(want) != 256 {
			t.Fatal(len(want), "values")
		}
		for i, w := range want {
			if !(math.Abs(got[i]-w) <= 1e-7*math.Abs(w)) {
				t.Fatalf("signed %v: value %d is %v, want %v", c.signed, i, got[i], w)
			}
		}
		far := 0.008 // as package optim says of means, and half of it of squares
		if !c.signed {
			far = 0.004
		}
		for i, x := range c.code.sizes[1:] {
			if !(float64(x-c.code.sizes[i])/2 <= far) {
				t.Errorf("%v and %v are too far apart", c.code.sizes[i], x)
			}
		}
		if c.code.values[0] != 0 {
			t.Error("zeroed memory is not zero")
		}
	}
}

// Each number becomes the nearest size: every halfway point with its neighbours, and what
// lies between.
func TestCode8Nearest(t *testing.T) {
	for _, c := range []*code8{signedCode, unsignedCode} {
		check := func(x float32) {
			t.Helper()
			best := 0
			for i, s := range c.sizes {
				if math.Abs(float64(x)-float64(s)) < math.Abs(float64(x)-float64(c.sizes[best])) {
					best = i
				}
			}
			if got := c.nearest(math.Float32bits(x)); !(math.Abs(float64(x)-float64(c.sizes[got])) <= math.Abs(float64(x)-float64(c.sizes[best]))+2e-7*float64(x)) {
				t.Fatalf("%v: size %v, want %v", x, c.sizes[got], c.sizes[best])
			}
		}
		for i, s := range c.sizes {
			check(s)
			if i < len(c.sizes)-1 {
				m := math.Float32frombits(c.above[i])
				for _, x := range []float32{math.Nextafter32(m, 0), m, math.Nextafter32(m, 1)} {
					check(x)
				}
				if got := c.nearest(math.Float32bits(m) + 1); int(got) != i+1 {
					t.Fatalf("above %v: %d, want %d", m, got, i+1)
				}
				if got := c.nearest(math.Float32bits(m)); int(got) != i {
					t.Fatalf("at %v: %d, want %d", m, got, i)
				}
			}
		}
		for bits := uint32(0); bits <= math.Float32bits(1); bits += 99_991 {
			check(math.Float32frombits(bits))
		}
		for _, x := range []float32{math.Nextafter32(1, 2), 1e30, float32(math.Inf(1)), float32(math.NaN())} {
			c.nearest(math.Float32bits(x)) // must not panic
		}
	}
}

func TestCode8Blocks(t *testing.T) {
	var code [6]uint8
	var back [6]float32
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		v, want []float32 // want nil: all NaN
	}{
		{[]float32{0, 0, 0}, []float32{0, 0, 0}},
		{[]float32{4, -4, 2, 0}, []float32{4, -4 * 0.99296875, 4 * 0.50078125, 0}},
		{[]float32{-3e-5, 1e-12}, []float32{-3e-5 * 0.99296875, 0}},
		{[]float32{1e-42, -1e-42}, []float32{0, 0}},
		{[]float32{1, nan, 2}, nil},
	} {
		scale := signedCode.write(code[:len(c.v)], c.v)
		signedCode.read(back[:len(c.v)], code[:len(c.v)], scale)
		for i, x := range back[:len(c.v)] {
			if c.want == nil && x == x || c.want != nil && !(math.Abs(float64(x-c.want[i])) <= 1e-6*math.Abs(float64(c.want[i]))) {
				t.Errorf("%v: %v, want %v", c.v, back[:len(c.v)], c.want)
			}
		}
	}
	v := []float32{9, 1e-20, 0}
	scale := unsignedCode.writeSquares(code[:3], v)
	if unsignedCode.read(back[:3], code[:3], scale); back[0] != 9 || !(back[1] > 0) || back[2] != 0 {
		t.Error(back[:3])
	}
	if s := unsignedCode.writeSquares(code[:2], []float32{inf, 1}); !math.IsInf(float64(s), 1) {
		t.Error(s)
	}
}
