package host

import "github.com/snug-ml/snug/internal/driver"

func init() {
	for t := driver.Float32; t < driver.Bool; t++ {
		driver.Register("weighted", t, backend, run(weighted))
	}
}

// weighted: one number; writes it times F[0], and F[0].
func weighted(a *driver.Args) {
	x, out := values[float64](&a.In[0]), driver.Of[float64](&a.Out[0])
	out[0], out[1] = x[0]*a.F[0], a.F[0]
}
