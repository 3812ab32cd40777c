package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// idx is an IDX file of bytes.
func idx(data []byte, shape ...int) []byte {
	b := []byte{0, 0, 8, byte(len(shape))}
	for _, d := range shape {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return append(b, data...)
}

func zip(b []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Write(b)
	z.Close()
	return buf.Bytes()
}

// folderOf writes files; a nil one is left out.
func folderOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if b == nil {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mnistFiles are two images of 2x3 to train with and one to test with.
func mnistFiles() map[string][]byte {
	return map[string][]byte{
		"train-images-idx3-ubyte":   idx([]byte("abcdefghijkl"), 2, 2, 3),
		"train-labels-idx1-ubyte":   idx([]byte{9, 0}, 2),
		"t10k-images-idx3-ubyte.gz": zip(idx([]byte("ABCDEF"), 1, 2, 3)),
		"t10k-labels-idx1-ubyte.gz": zip(idx([]byte{4}, 1)),
	}
}

// sample reads sample i, which has to be there.
func sample(t *testing.T, ds Dataset, i int) Batch {
	t.Helper()
	b := newBatch(ds.Spec(), 1)
	if err := ds.Read(i, b.X, b.Y); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMNIST(t *testing.T) {
	train, test, err := MNIST(folderOf(t, mnistFiles()))
	if err != nil {
		t.Fatal(err)
	}
	if s := train.Spec(); train.Len() != 2 || test.Len() != 1 || !slices.Equal(s.Shape, []int{1, 2, 3}) || s.Classes != 10 {
		t.Errorf("%d and %d of %+v", train.Len(), test.Len(), s)
	}
	if b := sample(t, train, 1); string(b.X.U8) != "ghijkl" || b.Y[0] != 0 {
		t.Errorf("train 1: %q %d", b.X.U8, b.Y)
	}
	if b := sample(t, test, 0); string(b.X.U8) != "ABCDEF" || b.Y[0] != 4 {
		t.Errorf("test 0: %q %d", b.X.U8, b.Y)
	}
}

func TestMNISTRefuses(t *testing.T) {
	const images, labels, zipped = "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte.gz"
	good := mnistFiles()
	flipped := slices.Clone(good[zipped])
	flipped[len(flipped)-6] ^= 1 // in the checksum
	for _, c := range []struct {
		what, file string
		content    []byte
		want       string
	}{
		{"absent", labels, nil, labels + ".gz"},
		{"empty", images, []byte{}, "truncated: header wants 16 bytes, got 0"},
		{"labels for images", images, good[labels], "begins with 00 00 08 01, want 00 00 08 03"},
		{"floats", images, append([]byte{0, 0, 0xd, 3}, good[images][4:]...), "begins with 00 00 0d 03"},
		{"no images", images, idx(nil, 0, 2, 3), "shape [0 2 3]"},
		{"promises too much", images, idx(nil, 1<<30, 1<<30, 1<<30), "header says shape"},
		{"truncated", images, good[images][:20], "truncated: shape [2 2 3] wants 12 bytes, got 4"},
		{"trailing", images, append(slices.Clone(good[images]), 0), "bytes after the 12"},
		{"fewer labels", labels, idx([]byte{1}, 1), "has 2 images, but"},
		{"label", labels, idx([]byte{1, 10}, 2), "sample 1: label 10, want 0 to 9"},
		{"short gzip", zipped, good[zipped][:len(good[zipped])-9], "truncated"},
		{"gzip without its end", zipped, good[zipped][:len(good[zipped])-3], "truncated"},
		{"gzip header only", zipped, good[zipped][:4], "gzip"},
		{"checksum", zipped, flipped, "checksum"},
	} {
		files := mnistFiles()
		files[c.file] = c.content
		_, _, err := MNIST(folderOf(t, files))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: got %v, want …%s… and %s", c.what, err, c.want, c.file)
		}
	}
}

// Where no files are, the error says how to get them.
func TestAdvice(t *testing.T) {
	if _, err := mnistDir("there-is-no-such-command"); err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("mnist: %v", err)
	}
	if _, _, err := CIFAR10(t.TempDir()); err == nil || !strings.Contains(err.Error(), "binary version from https://") {
		t.Errorf("cifar: %v", err)
	}
	if _, err := os.Stat(fashionDir); err == nil {
		t.Skip("fashion-mnist is installed")
	}
	if _, _, err := FashionMNIST(""); err == nil || !strings.Contains(err.Error(), "package dataset-fashion-mnist") {
		t.Errorf("fashion-mnist: %v", err)
	}
}

// record is a CIFAR record whose pixels are all p.
func record(p byte, labels ...byte) []byte {
	return append(labels, bytes.Repeat([]byte{p}, 3072)...)
}

func TestCIFAR(t *testing.T) {
	files := map[string][]byte{"test_batch.bin": record(7, 3)}
	for i, name := range []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"} {
		files[name] = append(record(byte(2*i), 0), record(byte(2*i+1), 9)...)
	}
	c := cifar10
	c.records, c.tests = 2, 1
	train, test, err := c.read(folderOf(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if b := sample(t, train, 9); train.Len() != 10 || test.Len() != 1 || b.X.U8[3071] != 9 || b.Y[0] != 9 {
		t.Errorf("%d and %d samples; the last has pixel %d, label %d", train.Len(), test.Len(), b.X.U8[3071], b.Y[0])
	}
	for want, bad := range map[string][]byte{
		"truncated: it wants 3073 bytes, got 3072": record(0, 1)[:3072],
		"0 records, want 2":                        {},
		"1 records, want 2":                        record(0, 1),
		"record 1: truncated":                      append(record(0, 1), 1),
		"sample 1: label 10":                       append(record(0, 1), record(0, 10)...),
	} {
		files["data_batch_3.bin"] = bad
		if _, _, err := c.read(folderOf(t, files)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "data_batch_3.bin") {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}

	c = cifar{name: "cifar-100", labels: 2, classes: make([]string, 100), train: []string{"train.bin"}, records: 1, test: "test.bin", tests: 1}
	train, _, err = c.read(folderOf(t, map[string][]byte{"train.bin": record(1, 5, 99), "test.bin": record(2, 5, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	if b := sample(t, train, 0); b.Y[0] != 99 || b.X.U8[0] != 1 {
		t.Errorf("fine label %d, pixel %d", b.Y[0], b.X.U8[0])
	}
	if _, _, err := CIFAR100(folderOf(t, map[string][]byte{"fine_label_names.txt": []byte("a\nb\n")})); err == nil || !strings.Contains(err.Error(), "2 names, want 100") {
		t.Errorf("names: %v", err)
	}
}

// picture is a PNG: red on the left, blue on the right, with green margins that the
// square in the middle leaves out.
func picture(t *testing.T) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 24, 8))
	for y := range 8 {
		for x := range 24 {
			c := color.NRGBA{G: 255, A: 255}
			switch {
			case x >= 8 && x < 12:
				c = color.NRGBA{R: 255, A: 255}
			case x >= 12 && x < 16:
				c = color.NRGBA{B: 255, A: 255}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestFolder(t *testing.T) {
	p := picture(t)
	dir := folderOf(t, map[string][]byte{"dog/b.PNG": p, "dog/a.png": []byte("no image"), "dog/notes.txt": p, "dog/.c.png": p, "cat/c.png": p, ".d/e.png": p, "f.png": p})
	ds, err := Folder(dir, 8, 8)
	if err != nil {
		t.Fatal(err)
	}
	if s := ds.Spec(); ds.Len() != 3 || !slices.Equal(s.Names, []string{"cat", "dog"}) || !slices.Equal(s.Shape, []int{3, 8, 8}) {
		t.Errorf("%d samples of %+v", ds.Len(), s)
	}
	b := sample(t, ds, 2)
	left, right := 3*8+1, 3*8+6
	got := [6]uint8{b.X.U8[left], b.X.U8[64+left], b.X.U8[128+left], b.X.U8[right], b.X.U8[64+right], b.X.U8[128+right]}
	if want := [6]uint8{255, 0, 0, 0, 0, 255}; got != want || b.Y[0] != 1 {
		t.Errorf("left and right are %v with label %d, want %v", got, b.Y[0], want)
	}
	if err := ds.Read(1, b.X, b.Y); err == nil || !strings.Contains(err.Error(), filepath.Join("dog", "a.png")) {
		t.Errorf("no image: %v", err)
	}
	wide, err := Folder(dir, 8, 24)
	if err != nil {
		t.Fatal(err)
	}
	if b := sample(t, wide, 0); b.X.U8[8*24] != 255 || b.X.U8[0] != 0 {
		t.Errorf("the whole picture begins with red %d, green %d", b.X.U8[0], b.X.U8[8*24])
	}

	for want, files := range map[string]map[string][]byte{
		"no sub-folder":               {"a.png": p},
		"no image (.png, .jpg, .jpeg": {"cat/a.png": p, "dog/notes.txt": p},
	} {
		if _, err := Folder(folderOf(t, files), 8, 8); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
	if _, err := Folder(dir, 0, 8); err == nil || !strings.Contains(err.Error(), "0x8") {
		t.Errorf("height 0: %v", err)
	}
}

// Resizing keeps a plain colour plain, the mean of any picture nearly so, and a picture
// of the right size altogether.
func TestResize(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 40}, {8, 8}, {13, 11}, {40, 3}} {
		img := image.NewRGBA(image.Rect(0, 0, 11, 13))
		for i := range img.Pix {
			img.Pix[i] = uint8(i * 255 / len(img.Pix))
		}
		planes := make([]uint8, 3*size[0]*size[1])
		resize(planes, size[0], size[1], img)
		sum := 0
		for _, v := range planes {
			sum += int(v)
		}
		if mean := float64(sum) / float64(len(planes)); !(mean > 124 && mean < 131) {
			t.Errorf("%v: mean %v, want about 127.5", size, mean)
		}
		if size == [2]int{13, 11} && (planes[5] != img.Pix[4*5] || planes[len(planes)-1] != img.Pix[len(img.Pix)-2]) {
			t.Errorf("%v: not what it was", size)
		}
		for i := range img.Pix {
			img.Pix[i] = 200
		}
		resize(planes, size[0], size[1], img)
		if slices.Min(planes) != 200 || slices.Max(planes) != 200 {
			t.Errorf("%v: plain 200 became %d to %d", size, slices.Min(planes), slices.Max(planes))
		}
	}
}

// Whatever the parser takes has as many bytes as its shape says.
func FuzzIDX(f *testing.F) {
	f.Add(idx([]byte("abcdef"), 1, 2, 3), 3)
	f.Add(zip(idx([]byte{1, 2}, 2)), 1)
	f.Fuzz(func(t *testing.T, b []byte, dims int) {
		shape, data, err := unpackIDX(bytes.NewReader(b), 1+(dims&3))
		if err != nil {
			return
		}
		n := 1
		for _, d := range shape {
			n *= d
		}
		if n != len(data) || n == 0 {
			t.Fatalf("%d bytes of shape %v", len(data), shape)
		}
	})
}

// Whatever the parser takes is all of the file.
func FuzzCIFAR(f *testing.F) {
	f.Add(record(3, 1), false)
	f.Add(record(3, 1, 2), true)
	f.Fuzz(func(t *testing.T, b []byte, fine bool) {
		labels := 1
		if fine {
			labels = 2
		}
		x, y, err := parseCIFAR(bytes.NewReader(b), labels)
		if err == nil && len(x)+labels*len(y) != len(b) {
			t.Fatalf("%d pixels and %d labels out of %d bytes", len(x), len(y), len(b))
		}
	})
}
