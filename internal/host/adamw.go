package host

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	register("adamw", run(adamw[float32]), run(adamw[float64]))
	register("sgd", run(sgd[float32]), run(sgd[float64]))
}

func sgd[T float32 | float64](a *driver.Args) {
	w := driver.Of[T](&a.Out[0])
	for i, g := range driver.Of[T](&a.In[0])[:a.In[0].Len()] {
		w[i] -= T(a.F[0]) * (g + T(a.F[1])*w[i])
	}
}

func adamw[T float32 | float64](a *driver.Args) {
	w, m, v := driver.Of[T](&a.Out[0]), driver.Of[T](&a.Out[1]), driver.Of[T](&a.Out[2])
	rate, decay, b1, b2, eps := a.F[0], a.F[1], a.F[2], a.F[3], a.F[4]
	for i, g := range driver.Of[T](&a.In[0])[:a.In[0].Len()] {
		m[i] += T(1-b1) * (g - m[i])
		v[i] += T(1-b2) * (g*g - v[i])
		w[i] -= T(rate*decay)*w[i] + T(rate/a.F[5]*float64(m[i])/(math.Sqrt(float64(v[i])/a.F[6])+eps))
	}
}
