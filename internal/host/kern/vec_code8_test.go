package kern

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var codes8 = []*Code8{Signed8, Unsigned8}

// sizes are the values that are not negative, in order.
func (c *Code8) sizes() []float32 {
	if c.signed {
		return c.values[:129]
	}
	return c.values[:]
}

// The values are those that the papers' description gives: a sign, zeros for the power of ten, a one, and a linear part.
func TestCode8(t *testing.T) {
	for _, c := range codes8 {
		bits := 8
		if c.signed {
			bits = 7
		}
		var want []float64
		for b := range 1 << bits { // read bit by bit, from the left
			zeros := 0
			for zeros < 7 && b>>(bits-1-zeros)&1 == 0 {
				zeros++
			}
			if zeros == 7 {
				continue // no one among the first seven: they are 0 and 1
			}
			left := bits - 1 - zeros
			part := (float64(b&(1<<left-1)) + 0.5) / float64(int(1)<<left)
			v := (0.1 + 0.9*part) / math.Pow(10, float64(zeros))
			if want = append(want, v); c.signed {
				want = append(want, -v)
			}
		}
		want = append(want, 0, 1)
		slices.Sort(want)
		var got []float64
		for _, v := range c.values {
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
		for i, x := range c.sizes()[1:] {
			if !(float64(x-c.sizes()[i])/2 <= far) {
				t.Errorf("%v and %v are too far apart", c.sizes()[i], x)
			}
		}
		if c.values[0] != 0 {
			t.Error("zeroed memory is not zero")
		}
	}
}

// Each number becomes the nearest size: every halfway point with its neighbours, and what lies between.
func TestCode8Nearest(t *testing.T) {
	for _, c := range codes8 {
		sizes := c.sizes()
		check := func(x float32) {
			t.Helper()
			i, _ := slices.BinarySearch(sizes, x)
			best := math.Abs(float64(x - sizes[max(i-1, 0)]))
			if i < len(sizes) {
				best = min(best, math.Abs(float64(sizes[i]-x)))
			}
			if got := sizes[c.nearest(x)]; !(math.Abs(float64(x)-float64(got)) <= best+4e-7*float64(x)) {
				t.Fatalf("%v: size %v", x, got)
			}
		}
		for i, s := range sizes {
			check(s)
			if c.nearest(s) != int32(i) {
				t.Fatalf("%v has code %d, want %d", s, c.nearest(s), i)
			}
			if i < len(sizes)-1 {
				m := (s + sizes[i+1]) / 2
				for _, x := range []float32{math.Nextafter32(m, 0), m, math.Nextafter32(m, 1)} {
					check(x)
				}
			}
		}
		for bits := uint32(0); bits <= math.Float32bits(1); bits += 9_991 {
			check(math.Float32frombits(bits))
		}
		for _, x := range []float32{math.Nextafter32(1, 2), float32(math.NaN())} {
			c.nearest(x) // must not panic
		}
	}
}

// Every level gives the same bits.
func TestCode8Levels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 7*Block8 + 3
	src := make([]float32, n)
	for i := range src {
		src[i] = float32(r.NormFloat64() * math.Pow(10, -r.Float64()*9))
	}
	clear(src[Block8 : 2*Block8])
	for i := range src[2*Block8 : 3*Block8] {
		src[2*Block8+i] /= 1e30
		src[3*Block8+i] *= 1e30
		src[5*Block8+i] *= 1e-42
	}
	src[4*Block8+7] = float32(math.NaN())
	src[6*Block8+9], src[6*Block8+10] = float32(math.Inf(1)), 0
	for _, c := range codes8 {
		src := slices.Clone(src)
		if !c.signed {
			for i, x := range src {
				src[i] = float32(math.Abs(float64(x)))
			}
		}
		type result struct {
			code    [n + 1]uint8
			scales  [8]float32
			decoded [n + 1]float32
		}
		run := func(src []float32) (r result) {
			r.code[n], r.decoded[n] = 77, 77
			c.Write(r.code[:n], r.scales[:], src)
			c.Read(r.decoded[:n], r.code[:n], r.scales[:])
			return r
		}
		useLevel(t, portable)
		want := run(src)
		all := make([]float32, Block8) // codes
		code := make([]uint8, Block8)
		for i := range code {
			code[i] = uint8(i)
		}
		levels(t, func(t *testing.T) {
			got := run(src)
			if !bytes.Equal(got.code[:], want.code[:]) {
				for i := range got.code {
					if got.code[i] != want.code[i] {
						t.Fatalf("signed %v: %v has code %d, want %d", c.signed, src[i], got.code[i], want.code[i])
					}
				}
			}
			for i := range got.scales {
				if math.Float32bits(got.scales[i]) != math.Float32bits(want.scales[i]) {
					t.Fatalf("scale %v, want %v", got.scales[i], want.scales[i])
				}
			}
			for i, x := range got.decoded {
				if w := want.decoded[i]; math.Float32bits(x) != math.Float32bits(w) && (x == x || w == w) {
					t.Fatalf("signed %v: code %d of scale %v is %v, want %v", c.signed, got.code[i], got.scales[i/Block8], x, w)
				}
			}
			c.Read(all, code, []float32{1})
			for i, x := range all {
				if math.Float32bits(x) != math.Float32bits(c.values[i]) {
					t.Fatalf("signed %v: code %d is %v, want %v", c.signed, i, x, c.values[i])
				}
			}
		})
	}
}

func TestCode8Blocks(t *testing.T) {
	var code [6]uint8
	var back [6]float32
	var scale [1]float32
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
		Signed8.Write(code[:len(c.v)], scale[:], c.v)
		Signed8.Read(back[:len(c.v)], code[:len(c.v)], scale[:])
		for i, x := range back[:len(c.v)] {
			if c.want == nil && x == x || c.want != nil && !(math.Abs(float64(x-c.want[i])) <= 1e-6*math.Abs(float64(c.want[i]))) {
				t.Errorf("%v: %v, want %v", c.v, back[:len(c.v)], c.want)
			}
		}
	}
	Unsigned8.Write(code[:3], scale[:], []float32{9, 1e-20, 0})
	if Unsigned8.Read(back[:3], code[:3], scale[:]); back[0] != 9 || !(back[1] > 0) || back[2] != 0 {
		t.Error(back[:3])
	}
	if Unsigned8.Write(code[:2], scale[:], []float32{inf, 1}); !math.IsInf(float64(scale[0]), 1) {
		t.Error(scale)
	}
}

func BenchmarkCode8(b *testing.B) {
	const n = 4 * Block8
	x, code, scales := make([]float32, n), make([]uint8, n), make([]float32, n/Block8)
	for i := range x {
		x[i] = float32(i%100)/10 - 5
	}
	for _, k := range []struct {
		name string
		run  func()
	}{{"write", func() { Signed8.Write(code, scales, x) }}, {"read", func() { Signed8.Read(x, code, scales) }}} {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(5 * n)
			for b.Loop() {
				k.run()
			}
		})
	}
}
