package host

import (
	"math"
	"slices"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for _, t := range []driver.DType{driver.Int64, driver.Int32, driver.Uint8} {
		driver.Register("class count", t, backend, driver.Kernel{Run: classCount, Mixed: true})
	}
	for t, k := range map[driver.DType][4]func(*driver.Args){
		driver.Float32:  {crossEntropy[float32], crossEntropyBackward[float32], nll[float32], correct[float32]},
		driver.Float64:  {crossEntropy[float64], crossEntropyBackward[float64], nll[float64], correct[float64]},
		driver.BFloat16: {crossEntropy[float32], crossEntropyBackward[float32], nll[float32], correct[float32]},
		driver.Float16:  {crossEntropy[float32], crossEntropyBackward[float32], nll[float32], correct[float32]},
	} {
		for i, name := range []string{"cross entropy", "cross entropy backward", "nll", "correct"} {
			driver.Register(name, t, backend, driver.Kernel{Run: k[i], Mixed: true})
		}
	}
	for t, k := range map[driver.DType]func(*driver.Args){driver.Float32: nllBackward[float32], driver.Float64: nllBackward[float64]} {
		driver.Register("nll backward", t, backend, driver.Kernel{Run: k, Mixed: true})
	}
}

// classes are the targets of rows of logits: which of them count, and how much.
type classes struct {
	target  []int64
	ignored []float64
	weight  []float64 // nil: 1 each
}

// of is a row's class and weight; a row that does not count has weight 0 and no class.
func (c *classes) of(row int) (class int, weight float64) {
	t := c.target[row]
	switch {
	case slices.Contains(c.ignored, float64(t)):
		return -1, 0
	case c.weight != nil:
		return int(t), c.weight[t]
	}
	return int(t), 1
}

// classCount: target and the classes' weights, if they have some. It writes the sum of the
// weights of all rows that count, and 1 and the first target that is no class, or zeros.
// F: the number of classes, then the targets that do not count.
func classCount(a *driver.Args) {
	c := classes{target: values[int64](&a.In[0]), ignored: a.F[1:]}
	if len(a.In) > 1 {
		c.weight = values[float64](&a.In[1])
	}
	total, outside := 0.0, driver.Of[int64](&a.Out[1])
	outside[0], outside[1] = 0, 0
	for row, t := range c.target {
		if (t < 0 || t >= int64(a.F[0])) && !slices.Contains(c.ignored, float64(t)) {
			outside[0], outside[1] = 1, t
			break
		}
		_, w := c.of(row)
		total += w
	}
	driver.Of[float64](&a.Out[0])[0] = total
}

// divisor is what a loss is divided by: of nothing that counts the mean is 0.
func divisor(kept *driver.Array, sum bool) float64 {
	n := driver.Of[float64](kept)[0]
	switch {
	case sum:
		return 1
	case n == 0:
		return math.Inf(1)
	}
	return n
}

// sumRows adds up what fn says of ranges of rows, in their order.
func sumRows(threads, rows, width int, fn func(lo, hi int) float64) (total float64) {
	g := channelGrain(width)
	parts := make([]float64, (rows+g-1)/g)
	par.Range(threads, rows, g, func(lo, hi int) { parts[lo/g] = fn(lo, hi) })
	for _, p := range parts {
		total += p
	}
	return total
}

// reader gives parts of an array as T: where they lie or, for another type, copied to buf.
func reader[T float32 | float64](a *driver.Array) func(buf []T, lo, hi int) []T {
	if v, ok := typed[T](a); ok {
		return func(_ []T, lo, hi int) []T { return v[lo:hi] }
	}
	read := load[T](a)
	return func(buf []T, lo, hi int) []T {
		read(buf[:hi-lo], lo, 1)
		return buf[:hi-lo]
	}
}

// stepOf is how many of n elements to take at a time: all if the arrays have them as T, and
// else what buffers hold.
func stepOf[T float32 | float64](n int, arrays ...*driver.Array) int {
	for _, a := range arrays {
		if _, ok := typed[T](a); !ok {
			return chunk
		}
	}
	return max(1, n)
}

// crossEntropy: logits, target, kept, weight; writes the loss and each row's ln Σeˣ. F:
// label smoothing, whether it is a sum, targets that do not count.
func crossEntropy[T float32 | float64](a *driver.Args) {
	read, c := reader[T](&a.In[0]), classesOf(a, 3)
	lse := driver.Of[T](&a.Out[1])
	rows, n := len(c.target), lastDim(&a.In[0])
	step := stepOf[T](n, &a.In[0])
	smooth := a.F[0]
	total := sumRows(a.Threads, rows, n, func(lo, hi int) (sum float64) {
		var buf [chunk]T
		for row := lo; row < hi; row++ {
			at := row * n
			top := T(math.Inf(-1))
			for i := at; i < at+n; i += step {
				top = max(top, greatestOf(read(buf[:], i, min(i+step, at+n)))) // a NaN shows in the sum
			}
			var all float64
			for i := at; i < at+n; i += step {
				all += sumExp(read(buf[:], i, min(i+step, at+n)), top)
			}
			l := float64(top) + math.Log(all)
			lse[row] = T(l)
			class, w := c.of(row)
			if class < 0 {
				continue
			}
			if w != 0 {
				sum += (1 - smooth) * w * (l - float64(read(buf[:], at+class, at+class+1)[0]))
			}
			if smooth == 0 {
				continue
			}
			all = 0 // Σ weight·(ln Σeˣ − x)
			for i := at; i < at+n; i += step {
				part := read(buf[:], i, min(i+step, at+n))
				if c.weight == nil {
					for _, v := range part {
						all += l - float64(v)
					}
					continue
				}
				for j, v := range part {
					all += c.weight[i-at+j] * (l - float64(v))
				}
			}
			sum += smooth / float64(n) * all
		}
		return sum
	})
	driver.Of[T](&a.Out[0])[0] = T(total / divisor(&a.In[2], a.F[1] != 0))
}

// greatestOf is the greatest of v, NaNs left out: of nothing, -∞.
func greatestOf[T float32 | float64](v []T) T {
	if f := f32(v); f != nil {
		return T(kern.MaxRow(f))
	}
	top := T(math.Inf(-1))
	for _, v := range v {
		if v > top {
			top = v
		}
	}
	return top
}

// sumExp is Σ e^(x - shift).
func sumExp[T float32 | float64](x []T, shift T) (sum float64) {
	if f := f32(x); f != nil {
		return kern.SumExpRow(f, float32(shift))
	}
	for _, v := range x {
		sum += math.Exp(float64(v - shift))
	}
	return sum
}

// expScaled is dst = by·e^(x - shift).
func expScaled[T float32 | float64](dst, x []T, shift, by T) {
	if d := f32(dst); d != nil {
		kern.ExpScaledRow(d, f32(x), float32(shift), float32(by))
		return
	}
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = by * T(math.Exp(float64(v-shift)))
	}
}

// classesOf has the weights, if there are some, from the input at.
func classesOf(a *driver.Args, at int) *classes {
	c := &classes{target: values[int64](&a.In[1]), ignored: a.F[2:]}
	if len(a.In) > at {
		c.weight = driver.Of[float64](&a.In[at])
	}
	return c
}

func lastDim(a *driver.Array) int { return a.Shape[len(a.Shape)-1] }

// crossEntropyBackward: logits, target, kept, each row's ln Σeˣ, dy, weight; F as forward.
func crossEntropyBackward[T float32 | float64](a *driver.Args) {
	read, write, c := reader[T](&a.In[0]), store[T](&a.Out[0]), classesOf(a, 5)
	direct, isDirect := typed[T](&a.Out[0])
	lse := driver.Of[T](&a.In[3])
	rows, n := len(c.target), lastDim(&a.In[0])
	smooth, step := a.F[0], stepOf[T](n, &a.In[0], &a.Out[0])
	dy := float64(driver.Of[T](&a.In[4])[0]) / divisor(&a.In[2], a.F[1] != 0)
	every := smooth / float64(n) * dy // of each class, times its weight
	weights := float64(n)
	if c.weight != nil {
		weights = 0
		for _, w := range c.weight {
			weights += w
		}
	}
	par.Range(a.Threads, rows, channelGrain(n), func(lo, hi int) {
		var in, out [chunk]T
		for row := lo; row < hi; row++ {
			at := row * n
			class, w := c.of(row)
			one := (1 - smooth) * w * dy
			all := T(one + every*weights) // of the softmax
			for i := at; i < at+n; i += step {
				end := min(i+step, at+n)
				var dst []T
				if isDirect {
					dst = direct[i:end]
				} else {
					dst = out[:end-i]
				}
				if class < 0 {
					clear(dst)
				} else {
					expScaled(dst, read(in[:], i, end), lse[row], all)
					switch {
					case every == 0:
					case c.weight == nil:
						for j := range dst {
							dst[j] -= T(every)
						}
					default:
						for j := range dst {
							dst[j] -= T(every * c.weight[i-at+j])
						}
					}
					if k := at + class - i; k >= 0 && k < len(dst) {
						dst[k] -= T(one)
					}
				}
				if !isDirect {
					write(dst, i, 1)
				}
			}
		}
	})
}

// nll: logarithms of probabilities, target, kept. F: unused, whether it is a sum, targets
// that do not count.
func nll[T float32 | float64](a *driver.Args) {
	read, c, n := reader[T](&a.In[0]), classesOf(a, 3), lastDim(&a.In[0])
	total := sumRows(a.Threads, len(c.target), 1, func(lo, hi int) (sum float64) {
		var buf [1]T
		for row := lo; row < hi; row++ {
			if class, _ := c.of(row); class >= 0 {
				sum -= float64(read(buf[:], row*n+class, row*n+class+1)[0])
			}
		}
		return sum
	})
	driver.Of[T](&a.Out[0])[0] = T(total / divisor(&a.In[2], a.F[1] != 0))
}

// nllBackward: dy, target, kept; F as forward.
func nllBackward[T float32 | float64](a *driver.Args) {
	c, n, out := classesOf(a, 3), lastDim(&a.Out[0]), &a.Out[0]
	size, write := out.Type.Size(), store[T](out)
	d := []T{T(-float64(driver.Of[T](&a.In[0])[0]) / divisor(&a.In[2], a.F[1] != 0))}
	par.Range(a.Threads, len(c.target), channelGrain(n), func(lo, hi int) {
		clear(out.Data[lo*n*size : hi*n*size])
		for row := lo; row < hi; row++ {
			if class, _ := c.of(row); class >= 0 {
				write(d, row*n+class, 1)
			}
		}
	})
}

// correct: logits, target; writes how many rows have their first largest logit at the
// target, as a float64. A NaN is the largest of all.
func correct[T float32 | float64](a *driver.Args) {
	read, target, n := reader[T](&a.In[0]), values[int64](&a.In[1]), lastDim(&a.In[0])
	driver.Of[float64](&a.Out[0])[0] = sumRows(a.Threads, len(target), n, func(lo, hi int) (sum float64) {
		var buf [chunk]T
		for row := lo; row < hi; row++ {
			best, top := int64(-1), T(math.Inf(-1))
			for i := row * n; i < (row+1)*n; i += chunk {
				for j, v := range read(buf[:], i, min(i+chunk, (row+1)*n)) {
					if v > top || best < 0 || v != v && top == top {
						best, top = int64(i-row*n+j), v
					}
				}
			}
			if best >= 0 && best == target[row] {
				sum++
			}
		}
		return sum
	})
}
