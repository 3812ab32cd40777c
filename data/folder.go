package data

import (
	"fmt"
	"image"
	_ "image/gif" // the formats that Decode knows
	_ "image/jpeg"
	_ "image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/snug-ml/snug/internal/driver"
)

// maxPixels bounds what an image's header may make the decoder allocate.
const maxPixels = 1 << 27

var imageExts = []string{".gif", ".jpeg", ".jpg", ".png"}

type folder struct {
	size    int
	classes []string
	files   []string
	labels  []int64
}

// Folder is the images under dir, a sub-folder for each class: PNG, JPEG and GIF, as
// [3 size size] bytes of red, green and blue. The largest square in the middle is scaled
// to size; what is transparent becomes black. Files whose names begin with a dot are
// passed over, any other file is an error. Images are decoded when they are read.
func Folder(dir string, size int) (Dataset, error) {
	f := &folder{size: size}
	if err := f.list(dir); err != nil {
		return nil, fmt.Errorf("data: folder: %w", err)
	}
	return f, nil
}

func (f *folder) list(dir string) error {
	if f.size < 1 {
		return fmt.Errorf("images of size %d, want 1 or more", f.size)
	}
	classes, err := visible(dir)
	if err != nil {
		return err
	}
	for label, class := range classes {
		path := filepath.Join(dir, class)
		names, err := visible(path)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return fmt.Errorf("%s: no images", path)
		}
		for _, name := range names {
			if !slices.Contains(imageExts, strings.ToLower(filepath.Ext(name))) {
				return fmt.Errorf("%s: want one of %s", filepath.Join(path, name), strings.Join(imageExts, " "))
			}
			f.files = append(f.files, filepath.Join(path, name))
			f.labels = append(f.labels, int64(label))
		}
	}
	if f.classes = classes; len(classes) == 0 {
		return fmt.Errorf("%s: no sub-folders, want one for each class", dir)
	}
	return nil
}

// visible are the names in a folder, sorted, without those that begin with a dot.
func visible(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (f *folder) Len() int { return len(f.files) }

func (f *folder) Spec() Spec {
	return Spec{Shape: []int{3, f.size, f.size}, Type: driver.Uint8, Classes: len(f.classes), Names: f.classes}
}

func (f *folder) Read(i int, x Values, y []int64) error {
	y[0] = f.labels[i]
	img, err := decode(f.files[i])
	if err != nil {
		return fmt.Errorf("%s: %w", f.files[i], err)
	}
	square(x.U8, img, f.size)
	return nil
}

func decode(path string) (image.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c, _, err := image.DecodeConfig(file)
	if err != nil {
		return nil, err
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return nil, fmt.Errorf("%d x %d pixels, want 1 to %d", c.Width, c.Height, maxPixels)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(file)
	return img, err
}
