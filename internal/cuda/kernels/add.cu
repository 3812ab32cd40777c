#include "elementwise.cuh"

BINARY(add, x + y)
UNARY(scale, x * A(p))
BINARY(lerp, x + A(p) * (A(q) * y - x))

// lerp_mixed is lerp to a y of another type.
#define MIXED(T, S)                                                                      \
  KERNEL lerp_mixed##S(i64 n, double p, double q, T *out, const T *px, Operand py) {     \
    typedef Acc<T> A;                                                                    \
    for (i64 i = index(); i < n; i += span()) {                                          \
      A x = load(px + i);                                                                \
      store(out + i, x + A(p) * (A(q) * py.get<A>(i) - x));                              \
    }                                                                                    \
  }
FLOATS(MIXED)
