package amp_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/snug-ml/snug/amp"
)

func TestScaler(t *testing.T) {
	s := amp.NewScaler(amp.ScalerConfig{Start: 16, Growth: 4, Backoff: 0.25, Interval: 2})
	for i, c := range []struct {
		under  float64
		finite bool
		want   float64
	}{
		{16, true, 16}, {16, true, 64}, {16, true, 64}, {16, false, 64}, // reports under an old scale count for nothing
		{64, true, 64}, {64, false, 16}, {16, true, 16}, {16, true, 64}, // an overflow starts the count anew
		{64, false, 16}, {16, false, 4}, {4, false, 1}, {1, true, 1}, {1, true, 4}, {4, false, 1},
	} {
		if err := s.Report(c.under, c.finite); err != nil || s.Scale() != c.want {
			t.Error(i, err, s.Scale(), "want", c.want)
		}
	}
	if err := s.Report(1, false); err == nil || s.Scale() != 1 {
		t.Error(err, s.Scale())
	}
	s = amp.NewScaler(amp.ScalerConfig{Start: 3, Growth: 2, Backoff: 0.1, Interval: 1})
	if err := s.Report(3, false); err != nil || s.Scale() != 1 { // never below
		t.Error(err, s.Scale())
	}
}

func TestScalerSaves(t *testing.T) {
	a := amp.NewScaler(amp.DefaultScaler())
	for range 1999 {
		a.Report(65536, true)
	}
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	c := amp.NewScaler(amp.DefaultScaler())
	if err := json.Unmarshal(b, c); err != nil {
		t.Fatal(err)
	}
	if c.Report(65536, true); c.Scale() != 131072 {
		t.Error(c.Scale())
	}
	for _, bad := range []string{`{}`, `{"scale":0.5}`, `{"scale":2,"good":-1}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), c); err == nil || c.Scale() != 131072 {
			t.Error(bad, err, c.Scale())
		}
	}
}

func TestScalerConfig(t *testing.T) {
	good := amp.DefaultScaler()
	for i, change := range []func(c *amp.ScalerConfig){
		func(c *amp.ScalerConfig) { c.Start = 0 }, func(c *amp.ScalerConfig) { c.Growth = 1 },
		func(c *amp.ScalerConfig) { c.Backoff = 1 }, func(c *amp.ScalerConfig) { c.Interval = 0 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error(i, "accepted")
				}
			}()
			c := good
			change(&c)
			amp.NewScaler(c)
		}()
	}
}

// Windows on several goroutines may share a scaler.
func TestScalerIsShared(t *testing.T) {
	s := amp.NewScaler(amp.ScalerConfig{Start: 1 << 20, Growth: 2, Backoff: 0.5, Interval: 1 << 30})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				s.Report(1<<20, false)
				s.Scale()
			}
		})
	}
	wg.Wait()
	if s.Scale() != 1<<19 {
		t.Error(s.Scale())
	}
}

func ExampleScaler() {
	s := amp.NewScaler(amp.DefaultScaler())
	fmt.Println(s.Scale())
	s.Report(65536, false) // a window has met an overflow
	fmt.Println(s.Scale())
	// Output:
	// 65536
	// 32768
}
