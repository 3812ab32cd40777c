package safetensors

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"unicode/utf8"
)

// Tensor is what a file gets to hold. Its bytes are Data or, where they need not be in
// memory all at once, what Source writes.
type Tensor struct {
	Name   string
	DType  string
	Shape  []int
	Data   []byte
	Source func(io.Writer) error
}

// WriteFile writes a file that appears under its name complete or not at all: it is
// written and synced beside it, then renamed.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) (err error) {
	dir, base := filepath.Split(path)
	dir = cmp.Or(dir, ".")
	tmp := filepath.Join(dir, fmt.Sprintf(".%s.%016x.tmp", base, rand.Uint64()))
	fd, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			fd.Close()
			os.Remove(tmp)
		}
	}()
	w := bufio.NewWriterSize(fd, 1<<20)
	if err := Write(w, tensors, metadata); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := cmp.Or(w.Flush(), fd.Sync(), fd.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename last through a power failure. Windows cannot sync a folder.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Write writes tensors, those with wide elements first, so that each is aligned to its
// own element. The order is otherwise the given one; equal arguments give equal bytes.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	tensors = slices.Clone(tensors)
	slices.SortStableFunc(tensors, func(a, b Tensor) int { return cmp.Compare(sizes[b.DType], sizes[a.DType]) })
	header, lengths, err := layout(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))); err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for i, t := range tensors {
		c := counter{w: w}
		if t.Source != nil {
			err = t.Source(&c)
		} else {
			_, err = c.Write(t.Data)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if c.n != lengths[i] {
			return fmt.Errorf("tensor %q: %s of shape %v has %d bytes, got %d", t.Name, t.DType, t.Shape, lengths[i], c.n)
		}
	}
	return nil
}

// layout makes the header, padded so that the data begins at a multiple of 8.
func layout(tensors []Tensor, metadata map[string]string) (header []byte, lengths []int64, err error) {
	type item struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	members := map[string]any{} // which Marshal sorts by name
	if metadata != nil {
		for k, v := range metadata {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, nil, fmt.Errorf("metadata %q: %q is not UTF-8", k, v)
			}
		}
		members[metadataKey] = metadata
	}
	var end int64
	for _, t := range tensors {
		n, err := bytesOf(t.DType, t.Shape)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		case t.Name == metadataKey || !utf8.ValidString(t.Name):
			return nil, nil, fmt.Errorf("%q cannot be a tensor's name", t.Name)
		case members[t.Name] != nil:
			return nil, nil, fmt.Errorf("tensor %q comes twice", t.Name)
		case end+n < 0:
			return nil, nil, fmt.Errorf("tensor %q: the file would have more than 2^63 bytes", t.Name)
		}
		members[t.Name] = item{t.DType, append([]int{}, t.Shape...), [2]int64{end, end + n}}
		lengths = append(lengths, n)
		end += n
	}
	if header, err = json.Marshal(members); err != nil {
		return nil, nil, err
	}
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	if len(header) > maxHeader {
		return nil, nil, fmt.Errorf("header of %d bytes, want at most %d", len(header), maxHeader)
	}
	return header, lengths, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
