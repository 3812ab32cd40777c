package kern

import (
	"math"
	"testing"
)

func TestAttendRows(t *testing.T) {
	levels(t, func(t *testing.T) {
		for n := 1; n < 70; n++ {
			const scale = 0.3
			x, y := make([]float32, n+1), make([]float32, n+1)
			greatest, p, want := math.Inf(-1), make([]float64, n), 0.0
			for i := range x {
				x[i], y[i] = float32(20*math.Sin(float64(i*i+n))), float32(math.Cos(float64(i)))
			}
			for _, v := range x[:n] {
				greatest = max(greatest, float64(v)*scale)
			}
			for i, v := range x[:n] {
				p[i] = math.Exp(float64(v)*scale - greatest)
				want += p[i]
			}
			scores := append([]float32(nil), x...)
			top, sum := AttendRow(scores[:n], scale)
			if !(math.Abs(float64(top)-greatest) <= 1e-6*math.Abs(greatest)) || !(math.Abs(float64(sum)-want) <= 1e-6*want) || scores[n] != x[n] {
				t.Fatalf("%d values: greatest %v, sum %v, want %v and %v; %v after them, want %v", n, top, sum, greatest, want, scores[n], x[n])
			}
			const inner = 0.2
			grads := append([]float32(nil), y...)
			back := append([]float32(nil), x...)
			sums := top + float32(math.Log(float64(sum)))
			AttendBackRow(back[:n], grads[:n], scale, sums, inner)
			for i := range n {
				if got := float64(scores[i]); !(math.Abs(got-p[i]) <= 3e-6*p[i]) {
					t.Fatalf("%d values: %d is %v, want %v", n, i, got, p[i])
				}
				if got := float64(back[i]); !(math.Abs(got-p[i]/want) <= 3e-6*p[i]/want) {
					t.Fatalf("%d values: probability %d is %v, want %v", n, i, got, p[i]/want)
				}
				w := p[i] / want * (float64(y[i]) - inner) * scale
				if got := float64(grads[i]); !(math.Abs(got-w) <= 4e-6*math.Abs(w)+1e-9) {
					t.Fatalf("%d values: gradient %d is %v, want %v", n, i, got, w)
				}
			}
			if back[n] != x[n] || grads[n] != y[n] {
				t.Fatalf("%d values: wrote behind them", n)
			}
		}
		nan := []float32{1, float32(math.NaN()), 2}
		if _, sum := AttendRow(nan, 1); sum == sum {
			t.Errorf("a NaN gives the sum %v", sum)
		}
	})
}

func BenchmarkAttendRow(b *testing.B) {
	x := make([]float32, 1024)
	for b.Loop() {
		AttendRow(x, 1)
	}
	b.SetBytes(4 * 1024)
}
