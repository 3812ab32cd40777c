#include "four.cuh"
#include "reduce.cuh"
#include "table.cuh"

// How results lie, and the elements of each.
#define SUM(T, S)                                                                                      \
  KERNEL sum##S(Reduction d, Operand out, double scale, const T *x, Layout outer, Layout inner) {      \
    reduce(d, out, scale, [=](i64 r) {                                                                 \
      const T *from = x + outer.at(r);                                                                 \
      return [=](i64 j) { return (double)load(from + inner.at(j)); };                                  \
    });                                                                                                \
  }                                                                                                    \
  KERNEL square_sum##S(Reduction d, Operand out, double scale, const T *x, Layout outer, Layout inner) { \
    reduce(d, out, scale, [=](i64 r) {                                                                 \
      const T *from = x + outer.at(r);                                                                 \
      return [=](i64 j) { double v = load(from + inner.at(j)); return v * v; };                        \
    });                                                                                                \
  }
FLOATS(SUM)

// The parts of n sums.
KERNEL sum_parts(Reduction d, Operand out, double scale, const double *parts) {
  reduce(d, out, scale, [=](i64 r) { return [=](i64 j) { return parts[j * d.n + r]; }; });
}

// Squared is an array whose sum of squares is wanted, of n elements, with room for its
// parts: one for each 16384 elements.
struct Squared {
  const void *x;
  double *parts, *out;
  i64 n;
  int first, dense;
};
typedef Table<Squared, 100> Squares;

// The parts, one of each block.
#define SQUARE_SUMS(T, S)                                                           \
  KERNEL square_sums##S(Squares squares) {                                          \
    __shared__ double s[256];                                                       \
    const Squared p = squares.mine();                                               \
    const T *x = (const T *)p.x;                                                    \
    const i64 part = blockIdx.x - p.first, end = min(p.n, 16384 * (part + 1));      \
    double sum = 0;                                                                 \
    for (i64 i = 16384 * part + 4 * threadIdx.x; i < end; i += 4 * blockDim.x) {    \
      Acc<T> v[4] = {};                                                             \
      if (p.dense && i + 4 <= end) loadFew(v, x, i);                                \
      else                                                                          \
        for (int k = 0; k < 4; k++) v[k] = i + k < end ? load(x + i + k) : 0;       \
      for (int k = 0; k < 4; k++) sum += (double)v[k] * v[k];                       \
    }                                                                               \
    sum = blockSum(sum, s);                                                         \
    if (threadIdx.x == 0) p.parts[part] = sum;                                      \
  }
FLOATS(SQUARE_SUMS)

// The sums, one of each block.
KERNEL square_sums_of_parts(Squares squares) {
  __shared__ double s[256];
  const Squared p = squares.of[blockIdx.x];
  double sum = 0;
  for (i64 i = threadIdx.x; i < (p.n + 16383) / 16384; i += blockDim.x) sum += p.parts[i];
  sum = blockSum(sum, s);
  if (threadIdx.x == 0) *p.out = sum;
}
