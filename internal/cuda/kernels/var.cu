#include "elementwise.cuh"
#include "reduce.cuh"

#define VAR(T, S)                                                                                         \
  KERNEL square_deviation##S(Reduction d, Operand out, double scale, const T *x, Layout outer, Layout inner, \
                             Operand means) {                                                             \
    reduce(d, out, scale, [=](i64 r) {                                                                    \
      const T *from = x + outer.at(r);                                                                    \
      double mean = means.get<double>(r);                                                                 \
      return [=](i64 j) { double v = load(from + inner.at(j)) - mean; return v * v; };                    \
    });                                                                                                   \
  }
FLOATS(VAR)

#define BACKWARD(T, S, NAME, ...) TERNARY_TO(T, Acc<T>, T, S, NAME, __VA_ARGS__)
OVER_FLOATS(BACKWARD, var_backward, A(p) * (x - y) * z) // x, mean, the variance's gradient
