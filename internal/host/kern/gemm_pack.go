package kern

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

// A packing is what is stored, and what is made of it: float32, but for packF64 and packPairs.
type packing int

const (
	packF32 packing = iota
	packF64
	packB16
	packF16
	packPairs // of bfloat16 that follow each other in the depth; a lone last one has a zero beside it
)

// pack makes dst[p·pitch + i] of src[i·si + p·sp], for i below n and p below k; n is at most two vectors. With pairs, p
// counts these in dst. It may write up to gemmSlack elements more.
func pack[T Elem, F floating](kind packing, dst []F, pitch int, src []T, si, sp, n, k int) {
	done := 0 // of the depth
	switch {
	case level >= avx512:
		done = pack512(kind, dst, pitch, src, si, sp, n, k)
	case kind == packF32 && si == 1:
		pick(copyRowsAsm, copyRows[F])(dst, pitch, same[F](src), sp, n, k)
		done = k
	case kind == packF32 && sp == 1:
		done = k
		for i := 0; i < n; i += 8 {
			done = transpose(k, same[F](src)[i*si:], si, min(8, n-i), dst[i:], pitch)
		}
	}
	if done == k {
		return
	}
	src = src[done*sp:]
	switch kind {
	case packF32, packF64:
		packStrided(dst[done*pitch:], pitch, same[F](src), si, sp, n, k-done)
	case packPairs:
		packPairsGo(same[float32](dst)[done/2*pitch:], pitch, any(src).([]driver.B16), si, sp, n, k-done)
	default:
		packHalf(dst[done*pitch:], pitch, src, si, sp, n, k-done)
	}
}

// copyRows makes dst[p·pitch + i] of src[p·distance + i], for up to 16 i and k p. In assembly it writes whole vectors.
func copyRows[F floating](dst []F, pitch int, src []F, distance, n, k int) {
	for p := range k {
		copy(dst[p*pitch:][:n], src[p*distance:])
	}
}

func packStrided[F floating](dst []F, pitch int, src []F, si, sp, n, k int) {
	for i := range n {
		at, to := i*si, i
		for range k {
			dst[to] = src[at]
			at, to = at+sp, to+pitch
		}
	}
}
func packPairsGo(dst []float32, pitch int, src []driver.B16, si, sp, n, k int) {
	for i := range n {
		for p := 0; p < k; p += 2 {
			pair := uint32(src[i*si+p*sp])
			if p+1 < k {
				pair |= uint32(src[i*si+(p+1)*sp]) << 16
			}
			dst[p/2*pitch+i] = math.Float32frombits(pair)
		}
	}
}

func packHalf[T Elem, F floating](dst []F, pitch int, src []T, si, sp, n, k int) {
	f := same[float32](dst)
	switch src := any(src).(type) {
	case []driver.B16:
		packWide(f, pitch, src, si, sp, n, k)
	case []driver.F16:
		packWide(f, pitch, src, si, sp, n, k)
	}
}

func packWide[T driver.B16 | driver.F16](dst []float32, pitch int, src []T, si, sp, n, k int) {
	if si == 1 {
		for p := range k {
			WidenRow(dst[p*pitch:], src[p*sp:][:n])
		}
		return
	}
	var wide [gemmDepth]float32
	var line [gemmDepth]T
	for i := range n {
		row := src[i*si:]
		if sp == 1 {
			row = row[:k]
		} else {
			for p := range k {
				line[p] = row[p*sp]
			}
			row = line[:k]
		}
		WidenRow(wide[:], row)
		for p, v := range wide[:k] {
			dst[p*pitch+i] = v
		}
	}
}

// widen converts a row of a 16-bit type.
func widen[T Elem, F floating](dst []F, src []T) {
	packHalf(dst, len(src), src, 1, len(src), len(src), 1)
}

// narrow rounds a row to a 16-bit type.
func narrow[T Elem, F floating](dst []T, src []F) { narrowRows(dst, 0, src, 0, 1, len(dst)) }

// narrowRows is NarrowRows of what may be no 16-bit type to the compiler.
func narrowRows[T Elem, F floating](dst []T, ds int, src []F, ss, rows, n int) {
	f := same[float32](src)
	switch dst := any(dst).(type) {
	case []driver.B16:
		NarrowRows(dst, ds, f, ss, rows, n)
	case []driver.F16:
		NarrowRows(dst, ds, f, ss, rows, n)
	}
}
