package data

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cifar is one of the two: how many label bytes a record has, the last of which counts,
// and the files with the number of their records.
type cifar struct {
	name    string
	labels  int
	classes []string
	train   []string
	records int // of each training file
	test    string
	tests   int
}

const cifarSite = "the binary version from https://www.cs.toronto.edu/~kriz/cifar.html, unpacked"

var cifar10 = cifar{
	name:    "cifar-10",
	labels:  1,
	classes: []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
	train:   []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
	records: 10000,
	test:    "test_batch.bin",
	tests:   10000,
}

// CIFAR10 reads photographs, [3 32 32] bytes, from the files of the binary version in
// dir: data_batch_1.bin to data_batch_5.bin and test_batch.bin.
func CIFAR10(dir string) (train, test Dataset, err error) { return cifar10.read(dir) }

// CIFAR100 reads photographs of 100 fine classes, [3 32 32] bytes, from train.bin,
// test.bin and fine_label_names.txt in dir.
func CIFAR100(dir string) (train, test Dataset, err error) {
	path := filepath.Join(dir, "fine_label_names.txt")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("data: cifar-100: %w: want %s", err, cifarSite)
	}
	names := strings.Fields(string(b))
	if len(names) != 100 {
		return nil, nil, fmt.Errorf("data: cifar-100: %s: %d names, want 100", path, len(names))
	}
	c := cifar{name: "cifar-100", labels: 2, classes: names, train: []string{"train.bin"}, records: 50000, test: "test.bin", tests: 10000}
	return c.read(dir)
}

func (c cifar) read(dir string) (train, test Dataset, err error) {
	if train, err = c.set(dir, c.train, c.records); err == nil {
		test, err = c.set(dir, []string{c.test}, c.tests)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: want %s", err, cifarSite)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("data: %s: %w", c.name, err)
	}
	return train, test, nil
}

func (c cifar) set(dir string, files []string, records int) (Dataset, error) {
	spec := Spec{Shape: []int{3, 32, 32}, Classes: len(c.classes), Names: c.classes}
	var x []uint8
	var y []int64
	for _, name := range files {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		fx, fy, err := parseCIFAR(f, c.labels)
		f.Close()
		if err == nil && len(fy) != records {
			err = fmt.Errorf("%d records, want %d", len(fy), records)
		}
		if err == nil {
			var i int
			if i, err = spec.checkLabels(fy); err != nil {
				err = fmt.Errorf("sample %d: %w", i, err)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		x, y = append(x, fx...), append(y, fy...)
	}
	return Slices(x, y, spec)
}

// parseCIFAR reads records of labels, the last of which counts, and 3 planes of 32x32.
func parseCIFAR(r io.Reader, labels int) (x []uint8, y []int64, err error) {
	const pixels = 3 * 32 * 32
	record := make([]byte, labels+pixels)
	b := bufio.NewReader(r)
	for {
		n, err := io.ReadFull(b, record)
		switch {
		case err == io.EOF:
			return x, y, nil
		case err != nil:
			return nil, nil, fmt.Errorf("record %d: %w", len(y), short(err, "it", len(record), n))
		}
		x, y = append(x, record[labels:]...), append(y, int64(record[labels-1]))
	}
}
