package host

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for _, t := range []driver.DType{driver.Float32, driver.BFloat16, driver.Float16} {
		driver.Register("adafactor", t, backend, driver.Kernel{Run: adafactor[float32], Scaled: true})
		driver.Register("adafactor vector", t, backend, driver.Kernel{Run: adafactorVector[float32], Scaled: true})
	}
	driver.Register("adafactor", driver.Float64, backend, driver.Kernel{Run: adafactor[float64], Scaled: true})
	driver.Register("adafactor vector", driver.Float64, backend, driver.Kernel{Run: adafactorVector[float64], Scaled: true})
}

// Adafactor (Shazeer and Stern, 2018) without a first moment:
//
//	v = β₂·v + (1 − β₂)·(g² + ε₁); of a matrix only the means of its rows r and its columns c,
//	which stand for v = r·c / mean of r
//	u = g / √v
//	w = keep·w − rate·u / max(1, RMS u / d), with a relative rate times max(ε₂, RMS w)
//
// F: rate, keep, β₂, ε₁, ε₂, d, whether the rate is relative, rows and columns of a tile.
// States: r and c, or v. The last output is scratch. Sums are those of tiles, in order.

// adafactor steps a matrix: all dimensions but the first are columns. It passes over the
// gradient three times.
func adafactor[T float32 | float64](a *driver.Args) {
	gradient, weights := newStepOperand[T](a, 0), newStepOperand[T](a, 1)
	m := tiling{rows: a.Out[0].Shape[0], high: int(a.F[7]), wide: int(a.F[8])}
	m.cols = a.Out[0].Len() / m.rows
	m.down, m.across = (m.rows+m.high-1)/m.high, (m.cols+m.wide-1)/m.wide
	row, col := driver.Of[T](&a.Out[1]), driver.Of[T](&a.Out[2])
	rest := driver.Of[float64](&a.Out[3])
	rowSums, rest := rest[:m.across*m.rows], rest[m.across*m.rows:]
	colSums, rest := rest[:m.down*m.cols], rest[m.down*m.cols:]
	tiles := m.down * m.across
	size, change := rest[:tiles], rest[tiles:2*tiles]

	eachTile(&m, a.Threads, func(tile int, r, c band, buf *[2][chunk]T) {
		sums := colSums[tile/m.across*m.cols:][:m.cols]
		clear(sums[c.lo:c.hi])
		var all float64
		for i := r.lo; i < r.hi; i++ {
			var sum float64
			for j := c.lo; j < c.hi; j += chunk {
				end := min(j+chunk, c.hi)
				sum += addSquares(sums[j:end], gradient.read(buf[0][:], i*m.cols+j, i*m.cols+end))
				all += norm2(weights.read(buf[1][:], i*m.cols+j, i*m.cols+end))
			}
			rowSums[tile%m.across*m.rows+i] = sum
		}
		size[tile] = all
	})
	// The first of the partial sums become a row's and a column's part of 1/√v.
	mean := renew(row, rowSums, m.across, m.cols, a.F)
	renew(col, colSums, m.down, m.rows, a.F)
	for i, r := range row {
		rowSums[i] = math.Sqrt(mean / float64(r))
	}
	for j, c := range col {
		colSums[j] = 1 / math.Sqrt(float64(c))
	}
	eachTile(&m, a.Threads, func(tile int, r, c band, buf *[2][chunk]T) {
		var all float64
		for i := r.lo; i < r.hi; i++ {
			var sum float64
			for j := c.lo; j < c.hi; j += chunk {
				end := min(j+chunk, c.hi)
				sum += norm2By(gradient.read(buf[0][:], i*m.cols+j, i*m.cols+end), colSums[j:end])
			}
			all += sum * rowSums[i] * rowSums[i]
		}
		change[tile] = all
	})
	keep, rate := T(a.F[1]), rateOf(a.F, size, change, m.rows*m.cols)
	eachTile(&m, a.Threads, func(_ int, r, c band, buf *[2][chunk]T) {
		for i := r.lo; i < r.hi; i++ {
			by := rate * rowSums[i]
			for j := c.lo; j < c.hi; j += chunk {
				end, at := min(j+chunk, c.hi), i*m.cols+j
				w := weights.read(buf[1][:], at, i*m.cols+end)
				g, cols := gradient.read(buf[0][:], at, i*m.cols+end)[:len(w)], colSums[j:end][:len(w)]
				if direct := f32(w); direct != nil {
					kern.AdafactorRow(direct, f32(g), cols, by, float32(keep))
				} else {
					for k := range w {
						w[k] = keep*w[k] - T(by*cols[k]*float64(g[k]))
					}
				}
				weights.write(w, at)
			}
		}
	})
}

// adafactorVector steps what is no matrix.
func adafactorVector[T float32 | float64](a *driver.Args) {
	gradient, weights := newStepOperand[T](a, 0), newStepOperand[T](a, 1)
	n, part := a.Out[0].Len(), int(a.F[7]*a.F[8])
	v := driver.Of[T](&a.Out[1])
	sums := driver.Of[float64](&a.Out[2])
	parts := (n + part - 1) / part
	size, change := sums[:parts], sums[parts:2*parts]
	beta2, fresh, eps := a.F[2], 1-a.F[2], a.F[3]
	par.Range(a.Threads, n, part, func(lo, hi int) {
		buf := new([2][chunk]T)
		var s, c float64
		for at := lo; at < hi; at += chunk {
			end := min(at+chunk, hi)
			s += norm2(weights.read(buf[1][:], at, end))
			v := v[at:end]
			for i, g := range gradient.read(buf[0][:], at, end) {
				q := float64(g) * float64(g)
				v[i] = T(beta2*float64(v[i]) + fresh*(q+eps))
				c += q / float64(v[i])
			}
		}
		size[lo/part], change[lo/part] = s, c
	})
	keep, rate := T(a.F[1]), rateOf(a.F, size, change, n)
	par.Range(a.Threads, n, part, func(lo, hi int) {
		buf := new([2][chunk]T)
		for at := lo; at < hi; at += chunk {
			end := min(at+chunk, hi)
			w, v := weights.read(buf[1][:], at, end), v[at:end]
			for i, g := range gradient.read(buf[0][:], at, end) {
				w[i] = keep*w[i] - T(rate*float64(g)/math.Sqrt(float64(v[i])))
			}
			weights.write(w, at)
		}
	})
}

// rateOf is what u is multiplied by; size and change are the tiles' sums of w² and u².
func rateOf(f []float64, size, change []float64, n int) float64 {
	rms := func(parts []float64) float64 {
		var s float64
		for _, p := range parts {
			s += p
		}
		return math.Sqrt(s / float64(n))
	}
	rate := f[0] / max(1, rms(change)/f[5])
	if f[6] != 0 {
		rate *= max(f[4], rms(size))
	}
	return rate
}

// renew moves means of g² by what lies in so many partial sums over n elements each, and
// returns their own mean.
func renew[T float32 | float64](means []T, sums []float64, parts, n int, f []float64) (mean float64) {
	beta2, eps := f[2], f[3]
	for i := range means {
		var s float64
		for k := range parts {
			s += sums[k*len(means)+i]
		}
		means[i] = T(beta2*float64(means[i]) + (1-beta2)*(s/float64(n)+eps))
		mean += float64(means[i])
	}
	return mean / float64(len(means))
}

// tiling cuts a matrix into tiles, a row of them after the other.
type tiling struct {
	rows, cols, high, wide int
	down, across           int // tiles
}

type band struct{ lo, hi int }

// eachTile gives every tile a buffer.
func eachTile[T number](m *tiling, threads int, fn func(tile int, r, c band, buf *[2][chunk]T)) {
	par.For(threads, m.down*m.across, func(tile int) {
		i, j := tile/m.across*m.high, tile%m.across*m.wide
		fn(tile, band{i, min(i+m.high, m.rows)}, band{j, min(j+m.wide, m.cols)}, new([2][chunk]T))
	})
}

// addSquares adds x² to sums, and returns the sum of all.
func addSquares[T float32 | float64](sums []float64, x []T) (all float64) {
	if x := f32(x); x != nil {
		return kern.SquareColumns(sums, x)
	}
	for i, x := range x {
		q := float64(x) * float64(x)
		sums[i] += q
		all += q
	}
	return all
}

// norm2 is the sum of x².
func norm2[T float32 | float64](x []T) (all float64) {
	if x := f32(x); x != nil {
		_, all = kern.MomentsRow(x, 0)
		return all
	}
	for _, x := range x {
		all += float64(x) * float64(x)
	}
	return all
}

// norm2By is the sum of (x·by)².
func norm2By[T float32 | float64](x []T, by []float64) (all float64) {
	if x := f32(x); x != nil {
		return kern.ScaledSquares(x, by)
	}
	for i, x := range x {
		q := float64(x) * by[i]
		all += q * q
	}
	return all
}
