package snug_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/safetensors"
)

// A small view of a big tensor: the statistics tell what it pins, saving writes what it
// shows, compacting gives the rest back.
func TestSmallViewOfABigTensor(t *testing.T) {
	d := open(t)
	if err := d.Infer(bg, func(s *snug.Scope) error {
		base := snug.Zeros(s, snug.Float32, 1_000_000)
		view := base.Slice(snug.Range{To: 1000})
		if st := d.Memory().Stats(); st.Allocated != 4_000_256 || st.Used != 4_000_000 {
			t.Errorf("with the base: allocated %d, used %d", st.Allocated, st.Used)
		}
		base.Free()
		if st := d.Memory().Stats(); st.Allocated != 4_000_256 || st.Used != 4_000 {
			t.Errorf("the view alone: allocated %d, used %d", st.Allocated, st.Used)
		}
		if by := pinnedBy(d); !strings.HasPrefix(by, "view made by slice at cases_test.go:") {
			t.Errorf("pinned by %q", by)
		}
		v, err := snug.Download[float32](view)
		if err != nil {
			return err
		}
		var file, empty bytes.Buffer
		save := func(b *bytes.Buffer, data []float32) {
			if err := safetensors.Write(b, []safetensors.Tensor{{Name: "v", DType: "F32", Shape: []int{len(data)}, Data: driver.Bytes(data)}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		save(&file, v)
		f, err := safetensors.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			return err
		}
		if data, err := f.Bytes("v"); err != nil || len(data) != 4000 {
			t.Error(len(data), err)
		}
		save(&empty, nil)
		if n := file.Len() - empty.Len(); n < 4000 || n > 4016 { // the header's numbers differ in length
			t.Errorf("saving wrote %d bytes", n)
		}
		if view.Compact(); s.Err() != nil {
			return s.Err()
		}
		if st := d.Memory().Stats(); st.Allocated != 4096 || st.Used != 4000 {
			t.Errorf("compacted: allocated %d, used %d", st.Allocated, st.Used)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func pinnedBy(d *snug.Device) string {
	for _, s := range d.Memory().Snapshot().Segments {
		for _, b := range s.Regions {
			if b.PinnedBy != "" {
				return b.PinnedBy
			}
		}
	}
	return ""
}

// A compacted view in a block lives as long as it did before, and keeps its gradient.
func TestCompactKeepsLifeAndGradient(t *testing.T) {
	d := open(t)
	w := snug.NewParam(snug.Uniform(1), 4, 4)
	place(t, d, w)
	grads := func(compact bool) (g []float32) {
		if err := d.Train(bg, func(s *snug.Scope) error {
			view := rows(ramp(s, 8, 4).MatMul(w), 2, 5)
			snug.Block(func(x *snug.Tensor) *snug.Tensor {
				if compact {
					view.Compact()
				}
				return x.ReLU()
			}, view)
			if err := mse(softSign(view), ramp(s, 3, 4)).Backward(); err != nil {
				return err
			}
			var err error
			g, err = snug.Download[float32](w.Grad(s))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		w.Zero()
		return g
	}
	a, b := grads(false), grads(true)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("%v, want %v", b, a)
		}
	}
}
