//go:build unix || windows

package host

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug/memory"
)

var _ memory.Source = (*File)(nil)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	f, err := NewFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	const unit = fileAlign
	var mem [4][]byte
	for i := range mem {
		if mem[i], err = f.Map(unit - 7); err != nil || len(mem[i]) != unit-7 {
			t.Fatal(err)
		}
		(Source{}).Fill(mem[i], byte(i+1))
	}
	f.Unmap(mem[1])
	f.Unmap(mem[3])
	f.Unmap(mem[2])
	if want := []stretch{{unit, 3 * unit}}; f.size != 4*unit || !slices.Equal(f.free, want) {
		t.Fatal(f.size, f.free)
	}
	again, err := f.Map(2 * unit) // in the stretches that were given back
	if err != nil || f.size != 4*unit || !slices.Equal(f.free, []stretch{{3 * unit, unit}}) {
		t.Fatal(err, f.size, f.free)
	}
	if again[0] != 2 || again[unit] != 3 || mem[0][unit-8] != 1 {
		t.Error("the file does not hold what was written")
	}
	more, err := f.Map(unit + 1)
	if err != nil || f.size != 6*unit {
		t.Fatal(err, f.size)
	}
	for _, m := range [][]byte{more, mem[0], again} {
		f.Unmap(m)
	}
	if !slices.Equal(f.free, []stretch{{0, 6 * unit}}) {
		t.Error(f.free)
	}
	if names, _ := os.ReadDir(dir); runtime.GOOS != "windows" && len(names) != 0 {
		t.Error("the file has a name:", names)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Error("the file stays:", names)
	}
}

// What the disk does not have is an error that names the file, and no stretch is lost.
func TestFileFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it would fill the disk")
	}
	dir := t.TempDir()
	f, err := NewFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Map(1 << 60); err == nil || !strings.Contains(err.Error(), dir) || f.size != 0 {
		t.Error(err, f.size)
	}
	if _, err := NewFile(dir + "/none"); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// Where fallocate is not, zeros reserve.
func TestFileFill(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := fill(f, stretch{5, 3<<20 + 1}); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 3<<20+6 {
		t.Error(info, err)
	}
}

// A disk that fails under a mapping is an error, too: here the file was cut.
func TestCopyFaults(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a mapped file cannot be cut")
	}
	f, err := NewFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := f.Map(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Unmap(mem)
	other := make([]byte, 1<<20)
	if err := errors.Join(Copy(mem, other), Copy(other, mem)); err != nil {
		t.Fatal(err)
	}
	if err := f.f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	if Copy(mem, other) == nil || Copy(other, mem) == nil {
		t.Error("no error")
	}
}

// Spots are written and read, and given back, as stretches are.
func TestSpots(t *testing.T) {
	f, err := NewFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Spot(fileAlign + 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Spot(10)
	if err != nil || f.size != 3*fileAlign {
		t.Fatal(err, f.size)
	}
	long, short := []byte(strings.Repeat("long", fileAlign/4)), []byte("0123456789")
	if err := errors.Join(a.Copy(long, true), b.Copy(short, true)); err != nil {
		t.Fatal(err)
	}
	gotLong, gotShort := make([]byte, len(long)), make([]byte, 10)
	if err := errors.Join(a.Copy(gotLong, false), b.Copy(gotShort, false)); err != nil || string(gotLong) != string(long) || string(gotShort) != string(short) {
		t.Error(err, string(gotShort))
	}
	a.Free()
	if c, err := f.Spot(1); err != nil || c.s.off != 0 || f.size != 3*fileAlign {
		t.Error(err, f.size)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Copy(short, true) == nil {
		t.Error("written to a closed file")
	}
}
