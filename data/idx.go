package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxIDX bounds what a header may promise, in bytes.
const maxIDX = 1 << 30

// parseIDX reads an IDX file of bytes with so many dimensions: two zeros, the type, the
// number of dimensions, each dimension as a big-endian uint32, then the bytes.
func parseIDX(r io.Reader, dims int) (shape []int, data []byte, err error) {
	head := make([]byte, 4+4*dims)
	n, err := io.ReadFull(r, head)
	if want := []byte{0, 0, 8, byte(dims)}; n >= 4 && !bytes.Equal(head[:4], want) {
		return nil, nil, fmt.Errorf("begins with % x, want % x: an IDX file of bytes in %d dimensions", head[:4], want, dims)
	}
	if err != nil {
		return nil, nil, short(err, "header", len(head), n)
	}
	for b := head[4:]; len(b) > 0; b = b[4:] {
		shape = append(shape, int(binary.BigEndian.Uint32(b)))
	}
	size := 1
	for _, d := range shape {
		if d < 1 || d > maxIDX/size {
			return nil, nil, fmt.Errorf("header says shape %v: want 1 to %d bytes", shape, maxIDX)
		}
		size *= d
	}
	// Grows with what is there, so that a wrong header costs no memory; the byte beyond
	// makes gzip read and check its end.
	if data, err = io.ReadAll(io.LimitReader(r, int64(size)+1)); err != nil {
		return nil, nil, short(err, fmt.Sprintf("shape %v", shape), size, len(data))
	}
	if len(data) < size {
		return nil, nil, short(io.ErrUnexpectedEOF, fmt.Sprintf("shape %v", shape), size, len(data))
	}
	if len(data) > size {
		return nil, nil, fmt.Errorf("bytes after the %d that shape %v has", size, shape)
	}
	return shape, data, nil
}

func short(err error, what string, want, got int) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("truncated: %s wants %d bytes, got %d", what, want, got)
	}
	return fmt.Errorf("after %d bytes: %w", got, err)
}

// readIDX reads dir/name or dir/name.gz; what is in it decides whether it is compressed.
func readIDX(dir, name string, dims int) (path string, shape []int, data []byte, err error) {
	path = filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		path += ".gz"
		f, err = os.Open(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil, fmt.Errorf("neither %s nor %s.gz in %s: %w", name, name, dir, fs.ErrNotExist)
	}
	if err != nil {
		return path, nil, nil, err
	}
	defer f.Close()
	shape, data, err = unpackIDX(f, dims)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return path, shape, data, err
}

func unpackIDX(r io.Reader, dims int) (shape []int, data []byte, err error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return parseIDX(b, dims)
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, nil, fmt.Errorf("gzip: %w", err)
	}
	if shape, data, err = parseIDX(z, dims); err != nil {
		err = fmt.Errorf("gzip: %w", err)
	}
	return shape, data, err
}

// idxImages is the dataset in a pair of files, NAME-images-idx3-ubyte and
// NAME-labels-idx1-ubyte.
func idxImages(dir, name string, classes []string) (Dataset, error) {
	images, shape, x, err := readIDX(dir, name+"-images-idx3-ubyte", 3)
	if err != nil {
		return nil, err
	}
	labels, count, l, err := readIDX(dir, name+"-labels-idx1-ubyte", 1)
	if err != nil {
		return nil, err
	}
	if shape[0] != count[0] {
		return nil, fmt.Errorf("%s has %d images, but %s has %d labels", images, shape[0], labels, count[0])
	}
	y := make([]int64, len(l))
	for i, b := range l {
		y[i] = int64(b)
	}
	spec := Spec{Shape: []int{1, shape[1], shape[2]}, Classes: len(classes), Names: classes}
	if i, err := spec.checkLabels(y); err != nil {
		return nil, fmt.Errorf("%s: sample %d: %w", labels, i, err)
	}
	return Slices(x, y, spec)
}
