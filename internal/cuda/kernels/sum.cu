#include "reduce.cuh"

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
