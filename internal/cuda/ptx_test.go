package cuda

import (
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The committed PTX is what the sources were compiled to: go generate makes it.
func TestPTXFitsSources(t *testing.T) {
	headers, err := filepath.Glob("kernels/*.cuh")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("kernels/*.cu")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range sources {
		sum := sha256.New()
		for _, part := range append(slices.Clone(headers), f) {
			text, err := os.ReadFile(part)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
		module := strings.TrimSuffix(filepath.Base(f), ".cu")
		want = append(want, fmt.Sprintf("%x %s", sum.Sum(nil), module))
		if _, err := os.Stat("ptx/" + module + ".ptx.gz"); err != nil {
			t.Error(err)
		}
	}
	made, err := os.ReadFile("ptx/sources.txt")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a[65:], b[65:]) })
	if got := strings.Fields(string(made)); !slices.Equal(got, strings.Fields(strings.Join(want, "\n"))) {
		for _, w := range want {
			if !strings.Contains(string(made), w) {
				t.Errorf("ptx/%s.ptx was made of another source: run go generate in internal/cuda", w[65:])
			}
		}
	}
}

// Each module is for every card and driver that docs/cuda.md names.
func TestPTXVersion(t *testing.T) {
	modules, err := filepath.Glob("ptx/*.ptx.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range modules {
		packed, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		defer packed.Close()
		z, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if !strings.HasPrefix(string(text), ".version 6.0\n.target sm_60\n") || !strings.Contains(string(text), ".visible .entry ") {
			t.Errorf("%s is not PTX 6.0 for compute capability 6.0, or has no kernel", f)
		}
	}
}
