package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// File is an open file whose header has been checked. Many goroutines may read from it.
type File struct {
	name  string
	r     io.ReaderAt
	close func() error
	start int64 // of the data
	at    map[string]entry
	order []string
	meta  map[string]string
}

type entry struct {
	Info
	begin, end int64 // from the start of the data
}

// Open reads and checks the header of a file, which stays open until Close.
func Open(path string) (*File, error) {
	fd, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := fd.Stat()
	if err == nil {
		var f *File
		if f, err = read(path, fd, st.Size()); err == nil {
			f.close = fd.Close
			return f, nil
		}
	}
	fd.Close()
	return nil, err
}

// Read is Open for size bytes that lie elsewhere than in a file.
func Read(r io.ReaderAt, size int64) (*File, error) { return read("safetensors", r, size) }

func read(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{name: name, r: r, close: func() error { return nil }, at: map[string]entry{}}
	if err := f.readHeader(size); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *File) readHeader(size int64) error {
	if size < 8 {
		return fmt.Errorf("want at least 8 bytes, got %d", size)
	}
	r := io.NewSectionReader(f.r, 0, size)
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return fmt.Errorf("reading the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return fmt.Errorf("header of %d bytes, want at most %d", n, maxHeader)
	}
	if n > uint64(size-8) {
		return fmt.Errorf("header of %d bytes, but only %d follow", n, size-8)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return fmt.Errorf("reading the header: %w", err)
	}
	f.start = 8 + int64(n)
	if err := f.parse(header); err != nil {
		return err
	}
	return f.cover(size - f.start)
}

// cover checks that the tensors, in the order in which they lie, fill the data exactly.
func (f *File) cover(size int64) error {
	f.order = slices.SortedFunc(maps.Keys(f.at), func(a, b string) int {
		x, y := f.at[a], f.at[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end), cmp.Compare(a, b))
	})
	var end int64
	for _, name := range f.order {
		e := f.at[name]
		switch {
		case e.begin < end:
			return fmt.Errorf("tensor %q begins at %d, inside the one before it, which ends at %d", name, e.begin, end)
		case e.begin > end:
			return fmt.Errorf("a gap of %d bytes before tensor %q", e.begin-end, name)
		case e.end > size:
			return fmt.Errorf("tensor %q ends at %d, but the data has %d bytes: truncated?", name, e.end, size)
		}
		end = e.end
	}
	if end < size {
		return fmt.Errorf("%d bytes after the last tensor", size-end)
	}
	return nil
}

func (f *File) Close() error { return f.close() }

// Names are the tensors' names in the order in which they lie in the file.
func (f *File) Names() []string { return slices.Clone(f.order) }

// Metadata is the header's free text by key; nil where it has none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.meta) }

func (f *File) Info(name string) (Info, bool) {
	e, ok := f.at[name]
	e.Shape = slices.Clone(e.Shape)
	return e.Info, ok
}

// Reader reads a tensor's bytes piece by piece.
func (f *File) Reader(name string) (*io.SectionReader, error) {
	e, ok := f.at[name]
	if !ok {
		return nil, fmt.Errorf("%s: no tensor %q", f.name, name)
	}
	return io.NewSectionReader(f.r, f.start+e.begin, e.Bytes), nil
}

// Bytes reads a whole tensor, as it lies in the file.
func (f *File) Bytes(name string) ([]byte, error) {
	r, err := f.Reader(name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, r.Size())
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", f.name, name, err)
	}
	return b, nil
}
