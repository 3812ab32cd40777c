package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is written is read back, aligned, whether from memory or from a source.
func TestRoundTrip(t *testing.T) {
	dtypes := slices.Sorted(maps.Keys(sizes))
	rapid.Check(t, func(t *rapid.T) {
		var in []Tensor
		want := map[string][]byte{}
		for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 6, rapid.ID[string]).Draw(t, "names") {
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
			dtype := rapid.SampledFrom(dtypes).Draw(t, "dtype")
			n, _ := bytesOf(dtype, shape)
			data := rapid.SliceOfN(rapid.Byte(), int(n), int(n)).Draw(t, "data")
			x := Tensor{Name: name, DType: dtype, Shape: shape, Data: data}
			if rapid.Bool().Draw(t, "source") {
				x.Data, x.Source = nil, func(w io.Writer) error { _, err := w.Write(data); return err }
			}
			in, want[name] = append(in, x), data
		}
		meta := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		var buf bytes.Buffer
		if err := Write(&buf, in, meta); err != nil {
			t.Fatal(err)
		}
		if n := binary.LittleEndian.Uint64(buf.Bytes()); n%8 != 0 {
			t.Fatalf("header of %d bytes: data is not aligned", n)
		}
		f, err := readBytes(buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Metadata(); !maps.Equal(got, meta) {
			t.Fatalf("metadata %v, want %v", got, meta)
		}
		if len(f.Names()) != len(in) {
			t.Fatalf("names %q, want %d", f.Names(), len(in))
		}
		for _, x := range in {
			i, _ := f.Info(x.Name)
			b, err := f.Bytes(x.Name)
			if err != nil || !bytes.Equal(b, want[x.Name]) || i.DType != x.DType || !slices.Equal(i.Shape, x.Shape) {
				t.Fatalf("%q: %v %v, want %s %v: %v", x.Name, i, b, x.DType, x.Shape, err)
			}
			if at := f.at[x.Name].begin; i.Bytes > 0 && at%sizes[i.DType] != 0 {
				t.Fatalf("%q: %s at %d", x.Name, i.DType, at)
			}
		}
	})
}

func TestWriteRefuses(t *testing.T) {
	ok := Tensor{Name: "a", DType: "U8", Shape: []int{2}, Data: []byte{1, 2}}
	broken := errors.New("device is gone")
	for _, c := range []struct {
		want string
		in   []Tensor
		meta map[string]string
	}{
		{"twice", []Tensor{ok, ok}, nil},
		{"2 bytes, got 1", []Tensor{{Name: "a", DType: "U8", Shape: []int{2}, Data: []byte{1}}}, nil},
		{"unknown dtype", []Tensor{{Name: "a", DType: "float32"}}, nil},
		{"negative", []Tensor{{Name: "a", DType: "U8", Shape: []int{-1}}}, nil},
		{"cannot be", []Tensor{{Name: "__metadata__", DType: "U8", Shape: []int{0}}}, nil},
		{"cannot be", []Tensor{{Name: "\xff", DType: "U8", Shape: []int{0}}}, nil},
		{"UTF-8", []Tensor{ok}, map[string]string{"k": "\xff"}},
		{"device is gone", []Tensor{{Name: "a", DType: "U8", Source: func(io.Writer) error { return broken }}}, nil},
	} {
		if err := Write(io.Discard, c.in, c.meta); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want …%s…", err, c.want)
		}
	}
}

// A write that fails leaves the old file and nothing else.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	good := []Tensor{{Name: "a", DType: "U8", Shape: []int{1}, Data: []byte{7}}}
	if err := WriteFile(path, good, nil); err != nil {
		t.Fatal(err)
	}
	bad := []Tensor{good[0], {Name: "b", DType: "U8", Shape: []int{1}}}
	if err := WriteFile(path, bad, nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error with %s", err, path)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files %v, want one", files)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := f.Bytes("a"); err != nil || !bytes.Equal(b, []byte{7}) {
		t.Errorf("got %v %v", b, err)
	}
}
