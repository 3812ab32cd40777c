//go:build cuda

package snug_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
	"github.com/snug-ml/snug/nn"
)

func openCard(t *testing.T, name string, c snug.Config) *snug.Device {
	t.Helper()
	d, err := snug.Open(name, c)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Parameters move between every two devices.
func TestLerpAcrossDevices(t *testing.T) {
	var devices []*snug.Device
	for _, name := range []string{"cpu", "cuda:0", "cuda:1"} {
		if d, err := snug.Open(name, snug.Config{}); err == nil {
			defer d.Close()
			devices = append(devices, d)
		}
	}
	if len(devices) < 2 {
		t.Skip("no CUDA device")
	}
	at := func(d *snug.Device, v float64) *snug.Param {
		p := snug.NewParam(snug.Const(v), 3, 5)
		place(t, d, p)
		return p
	}
	for _, from := range devices {
		for _, to := range devices {
			for _, w := range []float64{1, 0.25} {
				p, q := at(to, 2), at(from, 6)
				if err := p.Lerp(q, w); err != nil {
					t.Fatalf("%s to %s: %v", from.Name(), to.Name(), err)
				}
				if got := valuesOf(t, p); got[0] != 2+4*w || got[14] != 2+4*w {
					t.Errorf("%s to %s: %v, want %v", from.Name(), to.Name(), got, 2+4*w)
				}
				if err := nn.Close(&struct{ P, Q *snug.Param }{p, q}); err != nil {
					t.Error(err)
				}
			}
		}
		if n := from.Memory().Stats().Allocated; n != 0 {
			t.Errorf("%s: %d bytes are left", from.Name(), n)
		}
	}
}

// What the card refuses within the limit that was set is out of memory like any other, and
// the error has the others' share.
func TestCardRefuses(t *testing.T) {
	d := openCard(t, "cuda:0", snug.Config{LimitBytes: 1 << 44})
	err := d.Infer(bg, func(s *snug.Scope) error {
		snug.Zeros(s, snug.Float32, 1<<40)
		return s.Err()
	})
	e, ok := errors.AsType[*memory.OutOfMemoryError](err)
	if !ok || e.Cause != memory.Refused || !strings.Contains(e.Refusal, "other processes") {
		t.Fatalf("%v", err)
	}
	if err := d.Infer(bg, func(s *snug.Scope) error {
		v, err := snug.Zeros(s, snug.Float32, 10).Sum().Item()
		if v != 0 {
			t.Error(v)
		}
		return err
	}); err != nil {
		t.Error("afterwards: ", err)
	}
}

// The program need not lock a thread, and many goroutines may use one card.
func TestManyGoroutines(t *testing.T) {
	d := openCard(t, "cuda:0", snug.Config{})
	done := make(chan error)
	for i := range 8 {
		go func() {
			done <- d.Infer(bg, func(s *snug.Scope) error {
				x := snug.Full(s, float64(i), snug.Float32, 100)
				for range 20 {
					x = x.AddScalar(1)
				}
				v, err := x.Mean().Item()
				if v != float64(i+20) {
					t.Errorf("%v, want %d", v, i+20)
				}
				return err
			})
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
