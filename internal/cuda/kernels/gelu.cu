#include "elementwise.cuh"

#define ROOT_HALF 0.70710678118654752440   // 1/√2
#define DENSITY 0.39894228040143267794     // of the normal distribution at 0
#define TANH_SCALE 0.79788456080286535588  // √(2/π)
#define CUBIC 0.044715

UNARY(gelu, A(0.5) * x * erfc(-x * A(ROOT_HALF)))
BINARY(gelu_backward, y * (A(0.5) * erfc(-x * A(ROOT_HALF)) + x * A(DENSITY) * exp(A(-0.5) * x * x)))

template <class A> __device__ inline A bend(A x) { return tanh(A(TANH_SCALE) * (x + A(CUBIC) * x * x * x)); }

template <class A> __device__ inline A slope(A x) {
  A t = bend(x);
  return A(0.5) * (1 + t + x * (1 - t * t) * A(TANH_SCALE) * (1 + A(3 * CUBIC) * x * x));
}

UNARY(gelu_tanh, A(0.5) * x * (1 + bend(x)))
BINARY(gelu_tanh_backward, y * slope(x))
