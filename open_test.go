package snug_test

import (
	"strings"
	"testing"

	"github.com/snug-ml/snug"
)

// Without a device Open says what was looked for; a dry run needs none.
func TestOpenCUDA(t *testing.T) {
	if d, err := snug.Open("cuda:9", snug.Config{}); err == nil {
		d.Close()
	} else if found, looked := snug.Devices(); len(found) == 0 {
		for _, l := range looked {
			if !strings.Contains(err.Error(), l) {
				t.Errorf("%q does not say %q", err, l)
			}
		}
	}
	for _, name := range []string{"cuda:x", "cuda:-1", "cudas", "gpu", "dry:", "dry:dry:cpu"} {
		if _, err := snug.Open(name, snug.Config{}); err == nil || !strings.Contains(err.Error(), "no such device") {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, err := snug.Open("dry:cuda:0", snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var bytes int64
	if err := d.Infer(bg, func(s *snug.Scope) error {
		x := snug.Zeros(s, snug.Float32, 64, 64)
		x.MatMul(x)
		bytes = d.Memory().Stats().Allocated
		return s.Err()
	}); err != nil {
		t.Fatal(err)
	}
	if bytes != 2*64*64*4 {
		t.Errorf("%d bytes of two matrices", bytes)
	}
}
