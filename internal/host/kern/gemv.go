package kern

import "github.com/snug-ml/snug/internal/host/par"

// Few rows meet each element of b once: it is read where it lies, in long lines, and nothing is packed. Few columns are
// the same with the operands exchanged. Sums have the order that they have in any product.
const (
	gemvRows  = 4
	gemvChunk = 192   // columns of b that a goroutine takes at a time
	gemvAlone = 48000 // elements of b up to which a second thread costs more than it brings
)

// gemv reports whether it has computed the product: of rows up to gemvRows, by a b that is stored by rows or by columns.
func (g *gemm[T, F]) gemv() bool {
	if level < avx512 || g.m > gemvRows || g.half() || g.k == 0 || g.b.CS != 1 && (g.b.RS != 1 || g.packing != packF32) {
		return false
	}
	s := gemmStep[T, F]{gemm: *g, rows: g.m, cols: g.n}
	s.c, s.ldc = same[F](g.c.Data), g.c.RS
	s.a, s.b = same[F](g.a.Data), same[F](g.b.Data)
	chunks := (g.n + gemvChunk - 1) / gemvChunk
	if g.threads == 1 || g.n*g.k <= gemvAlone {
		for t := range chunks {
			s.chunk(t)
		}
		return true
	}
	shared := s
	par.For(g.threads, chunks, shared.chunk)
	return true
}

func (s *gemmStep[T, F]) chunk(t int) {
	c0 := t * gemvChunk
	n := min(gemvChunk, s.n-c0)
	c := s.c[c0:]
	d, ldd := s.addend(0, s.m, c0, c0+n, c, s.ldc)
	a, b := s.gemm.a, s.gemm.b
	for p := 0; p < s.k; p += s.gemm.deep {
		deep := min(s.gemm.deep, s.k-p)
		x, y := s.a[p*a.CS:], s.b[p*b.RS+c0*b.CS:]
		if b.CS == 1 {
			s.kern.tile(s.m, n, deep, x, a.RS, a.CS, y, b.RS, c, s.ldc, d, ldd)
		} else {
			dots512(s.m, n, deep, same[float32](x), a.RS, a.CS, same[float32](y), b.CS, same[float32](c), s.ldc, same[float32](d), ldd)
		}
		d, ldd = c, s.ldc
	}
}

// turn computes a product of few columns as one of few rows, which it then turns.
func (g *gemm[T, F]) turn(a, b Mat[T], c []F, ldc int, acc bool, bias []F) {
	out := any(g.turned).([]T)
	g.multiply(Mat[T]{b.Data, b.CS, b.RS}, Mat[T]{a.Data, a.CS, a.RS}, Mat[T]{out, g.n, 1}, false, nil)
	for i := range g.n {
		for j := range g.m {
			v := g.turned[j*g.n+i]
			if acc {
				v += c[i*ldc+j]
			}
			if bias != nil {
				v += bias[j]
			}
			c[i*ldc+j] = v
		}
	}
}
