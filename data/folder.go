package data

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
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

// maxPixels keeps a damaged header from taking all memory.
const maxPixels = 1 << 27

var imageTypes = []string{".png", ".jpg", ".jpeg", ".gif"}

// folder is a dataset of image files, read when they are asked for.
type folder struct {
	files         []string
	labels        []int64
	names         []string
	height, width int
}

// Folder is a dataset of the PNG, JPEG and GIF files in dir's sub-folders, each of which
// is a class; both are in the order of their names. Samples are red, green and blue
// planes of bytes, [3 height width]: the largest part in the middle that has this ratio,
// resized; transparent means black. Other files, and names that begin with a dot, are
// passed over.
func Folder(dir string, height, width int) (Dataset, error) {
	if height < 1 || width < 1 || height > maxPixels/width {
		return nil, fmt.Errorf("data: folder: images of %dx%d pixels", height, width)
	}
	f := &folder{height: height, width: width}
	if err := f.list(dir); err != nil {
		return nil, fmt.Errorf("data: folder: %w", err)
	}
	return f, nil
}

func (f *folder) list(dir string) error {
	classes, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	for _, c := range classes {
		class := filepath.Join(dir, c.Name())
		if st, err := os.Stat(class); err != nil {
			return err
		} else if !st.IsDir() || hidden(c) {
			continue
		}
		files, err := os.ReadDir(class)
		if err != nil {
			return err
		}
		before := len(f.files)
		for _, e := range files {
			if slices.Contains(imageTypes, strings.ToLower(filepath.Ext(e.Name()))) && !hidden(e) {
				f.files = append(f.files, filepath.Join(class, e.Name()))
				f.labels = append(f.labels, int64(len(f.names)))
			}
		}
		if len(f.files) == before {
			return fmt.Errorf("%s: no image (%s) in this class", class, strings.Join(imageTypes, ", "))
		}
		f.names = append(f.names, c.Name())
	}
	if len(f.names) == 0 {
		return fmt.Errorf("%s: no sub-folder, want one a class", dir)
	}
	return nil
}

func hidden(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }

func (f *folder) Len() int { return len(f.files) }

func (f *folder) Spec() Spec {
	return Spec{Shape: []int{3, f.height, f.width}, Type: driver.Uint8, Classes: len(f.names), Names: f.names}
}

func (f *folder) Read(i int, x Values, y []int64) error {
	img, err := readImage(f.files[i], f.height, f.width)
	if err != nil {
		return fmt.Errorf("%s: %w", f.files[i], err)
	}
	resize(x.U8, f.height, f.width, img)
	y[0] = f.labels[i]
	return nil
}

// readImage decodes the part of an image that will be height to width.
func readImage(path string, height, width int) (*image.RGBA, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller names the file
	}
	defer f.Close()
	c, _, err := image.DecodeConfig(f)
	if err != nil {
		return nil, err
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return nil, fmt.Errorf("%dx%d pixels, want 1 to %d", c.Width, c.Height, maxPixels)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(f)
	if err != nil {
		return nil, err
	}
	b := img.Bounds()
	w := min(b.Dx(), max(1, b.Dy()*width/height))
	h := min(b.Dy(), max(1, b.Dx()*height/width))
	rgba := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(rgba, rgba.Rect, img, b.Min.Add(image.Pt((b.Dx()-w)/2, (b.Dy()-h)/2)), draw.Src)
	return rgba, nil
}
