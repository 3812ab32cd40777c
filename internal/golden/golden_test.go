package golden

import (
	"math"
	"testing"
)

// Every case of every family has settings and readable tensors without a NaN.
func TestFamilies(t *testing.T) {
	for family, want := range map[string]int{"ops": 48, "layers": 25, "losses": 11, "optim": 20, "models": 5} {
		f := Load(t, family)
		if got := len(f.Cases()); got != want {
			t.Errorf("%s: %d cases, want %d", family, got, want)
		}
		for _, c := range f.Cases() {
			if f.Settings(c) == nil {
				t.Errorf("%s: %s has no settings", family, c)
			}
			for _, role := range f.Roles(c) {
				x, ok := f.Tensor(c, role)
				n := 1
				for _, d := range x.Shape {
					n *= d
				}
				if !ok || len(x.F)+len(x.I) != n {
					t.Errorf("%s: %s/%s of shape %v has %d floats and %d integers", family, c, role, x.Shape, len(x.F), len(x.I))
				}
				for i, v := range x.F {
					if math.IsNaN(v) {
						t.Fatalf("%s: %s/%s[%d] is NaN", family, c, role, i)
					}
				}
			}
		}
	}
}

// The values are right: ReLU of the input is the output, and what is absent is absent.
func TestValues(t *testing.T) {
	f := Load(t, "ops")
	x, _ := f.Tensor("relu", "in0")
	y, _ := f.Tensor("relu", "out0")
	if len(x.F) != 3*37 {
		t.Fatalf("%d values, want %d", len(x.F), 3*37)
	}
	for i, v := range x.F {
		if y.F[i] != max(0, v) {
			t.Fatalf("relu(%v) = %v", v, y.F[i])
		}
	}
	if _, ok := f.Tensor("relu", "w.weight"); ok {
		t.Error("relu has a parameter")
	}
	if s := Load(t, "layers").Settings("groupnorm_3"); s["groups"] != 3.0 {
		t.Errorf("settings of groupnorm_3: %v", s)
	}
}
