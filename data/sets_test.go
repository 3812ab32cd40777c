package data

import (
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"
)

// Another machine, or a later version, must not change what a seed gives.
func TestShapesAreTheSameEverywhere(t *testing.T) {
	ds := Shapes(1000, 1)
	sum := crc32.NewIEEE()
	for i := range 200 {
		sum.Write(sample(t, ds, i).X.U8)
	}
	if got, want := sum.Sum32(), uint32(0x1577edbc); got != want {
		t.Errorf("checksum %#x, want %#x", got, want)
	}
	if a, b := sample(t, ds, 999), sample(t, Shapes(1000, 2), 999); slices.Equal(a.X.U8, b.X.U8) {
		t.Error("two seeds give one picture")
	}
	if err := ds.Read(1000, Values{}, nil); err == nil {
		t.Error("sample 1000 of 1000 is there")
	}
}

// They can be learned but do not repeat: the nearest of many pictures mostly tells the
// digit of a new one, and the nearest of few does not.
func TestShapesCanBeLearned(t *testing.T) {
	few, many := nearest(t, 50), nearest(t, 800)
	if !(many > 0.6 && few < 0.5) {
		t.Errorf("nearest of 50: %.2f right, of 800: %.2f", few, many)
	}
}

func nearest(t *testing.T, n int) float64 {
	var known []Batch
	for i := range n {
		known = append(known, sample(t, Shapes(n, 1), i))
	}
	const asked = 60
	right := 0
	for i := range asked {
		b := sample(t, Shapes(asked, 2), i)
		best, digit := math.MaxInt, int64(-1)
		for _, k := range known {
			d := 0
			for j, v := range k.X.U8 {
				e := int(v) - int(b.X.U8[j])
				d += e * e
			}
			if d < best {
				best, digit = d, k.Y[0]
			}
		}
		if digit == b.Y[0] {
			right++
		}
	}
	return float64(right) / asked
}

func TestSlices(t *testing.T) {
	ds, err := Slices([]float32{1, 2, 3, 4, 5, 6}, []int64{0, 1, 0}, Spec{Shape: []int{2}, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	if b := sample(t, ds, 2); !slices.Equal(b.X.F32, []float32{5, 6}) || b.Y[0] != 0 || ds.Len() != 3 {
		t.Errorf("sample 2 of %d: %+v", ds.Len(), b)
	}
	part, err := Part(ds, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if b := sample(t, part, 0); part.Len() != 2 || b.X.F32[0] != 3 || b.Y[0] != 1 {
		t.Errorf("part: %d samples, the first %+v", part.Len(), b)
	}
	for want, s := range map[string]Spec{
		"do not fit":         {Shape: []int{3}, Classes: 2},
		"label 1, want 0 to": {Shape: []int{2}, Classes: 1},
		"1 names for 2":      {Shape: []int{2}, Classes: 2, Names: []string{"a"}},
		"1 or more":          {Shape: []int{0}},
	} {
		if _, err := Slices([]float32{1, 2, 3, 4, 5, 6}, []int64{0, 1, 0}, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
	if _, err := Part(ds, 2, 4); err == nil {
		t.Error("a part beyond the end")
	}
}

func TestMeanStd(t *testing.T) {
	ds, err := Slices([]uint8{0, 0, 255, 0, 255, 255, 51, 51}, []int64{0, 0}, Spec{Shape: []int{2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	mean, std, err := MeanStd(ds)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.5, 0.35, 0.5, math.Sqrt((1+2*0.04)/4 - 0.35*0.35)} {
		if got := slices.Concat(mean, std)[i]; !(math.Abs(float64(got)-want) <= 1e-6) {
			t.Errorf("means %v, deviations %v: number %d, want %v", mean, std, i, want)
		}
	}
	c, err := NewCorpus("abc", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := MeanStd(c); err == nil {
		t.Error("tokens have a mean")
	}
}

func TestCorpus(t *testing.T) {
	c, err := NewCorpus("héllo wörld", 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	if c.Len() != 3 || c.Spec().Classes != 8+1 {
		t.Errorf("%d windows of %d characters, want 3 of 9", c.Len(), c.Spec().Classes)
	}
	for i, want := range []string{"héll|éllo", "lo w|o wö", "wörl|örld"} {
		b := sample(t, c, i)
		if got := c.Decode(b.X.I64) + "|" + c.Decode(b.Y); got != want {
			t.Errorf("window %d is %q, want %q", i, got, want)
		}
	}
	tokens, err := c.Encode("wéd")
	if err != nil || c.Decode(tokens) != "wéd" {
		t.Errorf("encoded %v: %q, %v", tokens, c.Decode(tokens), err)
	}
	if _, err := c.Encode("x"); err == nil || !strings.Contains(err.Error(), "'x'") {
		t.Errorf("x: %v", err)
	}
	for want, f := range map[string]func() (*Corpus, error){
		"4 characters, want more": func() (*Corpus, error) { return NewCorpus("abcd", 4, 1) },
		"not UTF-8":               func() (*Corpus, error) { return NewCorpus("ab\xffcd", 2, 1) },
		"every 0":                 func() (*Corpus, error) { return NewCorpus("abcd", 2, 0) },
		"no such":                 func() (*Corpus, error) { return Text(t.TempDir()+"/no such", 2, 1) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
}
