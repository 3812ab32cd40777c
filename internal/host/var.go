package host

import "github.com/snug-ml/snug/internal/driver"

func init() {
	native("square deviation", run(squareDeviation[float32]), run(squareDeviation[float64]))
	native("var backward", rows(varBackRow[float32]), rows(varBackRow[float64]))
}

// squareDeviation: x, means; adds up squares as sum adds up elements.
func squareDeviation[T float32 | float64](a *driver.Args) {
	mean := values[T](&a.In[1])
	reduce(a, func(acc []float64, x []T, distance, n, at int) {
		mean := mean[at : at+len(acc)]
		for i := range n {
			for j, v := range x[i*distance:][:len(acc)] {
				d := float64(v) - float64(mean[j])
				acc[j] += d * d
			}
		}
	}, func(acc float64, v []T, at int) float64 {
		mean := float64(mean[at])
		for _, v := range v {
			d := float64(v) - mean
			acc += d * d
		}
		return acc
	})
}

// varBackRow: x, mean, dy; F: factor.
func varBackRow[T float32 | float64](f []float64, dst, x, mean, dy []T) {
	by := T(f[0])
	x, mean, dy = x[:len(dst)], mean[:len(dst)], dy[:len(dst)]
	for i := range dst {
		dst[i] = by * (x[i] - mean[i]) * dy[i]
	}
}
