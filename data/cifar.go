package data

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const cifarSite = "the binary version from https://www.cs.toronto.edu/~kriz/cifar.html, unpacked"

var cifar10 = []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}

// CIFAR10 reads photographs, [3 32 32] bytes, from the files of the binary version in
// dir: data_batch_1.bin to data_batch_5.bin and test_batch.bin.
func CIFAR10(dir string) (train, test Dataset, err error) {
	files := []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}
	return cifar(dir, "cifar-10", files, "test_batch.bin", 1, cifar10)
}

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
		return nil, nil, fmt.Errorf("data: cifar-100: %s has %d names, want 100", path, len(names))
	}
	return cifar(dir, "cifar-100", []string{"train.bin"}, "test.bin", 2, names)
}

func cifar(dir, what string, trainFiles []string, testFile string, labels int, names []string) (train, test Dataset, err error) {
	if train, err = cifarSet(dir, trainFiles, labels, names); err == nil {
		test, err = cifarSet(dir, []string{testFile}, labels, names)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: want %s", err, cifarSite)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("data: %s: %w", what, err)
	}
	return train, test, nil
}

func cifarSet(dir string, files []string, labels int, names []string) (Dataset, error) {
	spec := Spec{Shape: []int{3, 32, 32}, Classes: len(names), Names: names}
	var x []uint8
	var y []int64
	for _, name := range files {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		fx, fy, err := parseCIFAR(f, labels)
		f.Close()
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
		case err == io.EOF && len(y) > 0:
			return x, y, nil
		case err != nil:
			return nil, nil, fmt.Errorf("record %d: %w", len(y), short(err, "it", len(record), n))
		}
		x, y = append(x, record[labels:]...), append(y, int64(record[labels-1]))
	}
}
