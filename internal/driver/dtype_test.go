package driver

import (
	"math"
	"testing"
)

// Every 16-bit value comes back from float32 as itself, NaNs as NaNs.
func TestHalvesRoundTrip(t *testing.T) {
	for i := range 1 << 16 {
		if f := F16(i).Float32(); f != f {
			if g := ToF16(f).Float32(); g == g {
				t.Fatalf("float16 %#x: NaN became %v", i, g)
			}
		} else if got := ToF16(f); got != F16(i) {
			t.Fatalf("float16 %#x: %v became %#x", i, f, got)
		}
		if f := B16(i).Float32(); f != f {
			if g := ToB16(f).Float32(); g == g {
				t.Fatalf("bfloat16 %#x: NaN became %v", i, g)
			}
		} else if got := ToB16(f); got != B16(i) {
			t.Fatalf("bfloat16 %#x: %v became %#x", i, f, got)
		}
	}
}

// Between two neighbours the nearer one is taken, and the even one of two equally near.
func TestHalvesRound(t *testing.T) {
	for i := range uint16(0x7c00 - 1) {
		lo, hi := F16(i), F16(i+1)
		mid := (float64(lo.Float32()) + float64(hi.Float32())) / 2
		even := lo + lo&1
		for _, c := range []struct {
			f    float32
			want F16
		}{
			{float32(mid), even},
			{math.Nextafter32(float32(mid), 0), lo},
			{math.Nextafter32(float32(mid), 1e9), hi},
		} {
			if got := ToF16(c.f); got != c.want {
				t.Fatalf("%v: %#x, want %#x", c.f, got, c.want)
			}
		}
	}
	for i := range uint16(0x7f80 - 1) {
		lo := B16(i)
		mid := math.Float32frombits(uint32(i)<<16 | 0x8000)
		for _, c := range []struct {
			f    float32
			want B16
		}{
			{mid, lo + lo&1},
			{math.Nextafter32(mid, 0), lo},
			{math.Float32frombits(math.Float32bits(mid) + 1), lo + 1},
		} {
			if got := ToB16(c.f); got != c.want {
				t.Fatalf("%v: %#x, want %#x", c.f, got, c.want)
			}
		}
	}
	if got := ToF16(65520); got != 0x7c00 {
		t.Errorf("65520: %#x, want infinity", got)
	}
	if got := ToF16(65519); got != 0x7bff {
		t.Errorf("65519: %#x, want the largest number", got)
	}
}
