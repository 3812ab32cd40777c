#include "elementwise.cuh"

template <class A> __device__ inline A logistic(A x) { return 1 / (1 + exp(-x)); }

UNARY(sigmoid, logistic(x))
BINARY(sigmoid_backward, y * x * (1 - x))
UNARY(tanh, tanh(x))
BINARY(tanh_backward, y * (1 - x * x))
UNARY(silu, x * logistic(x))
BINARY(silu_backward, y * logistic(x) * (1 + x * (1 - logistic(x))))
UNARY(softplus, greater(x, A(0)) + log1p(exp(-fabs(x))))
BINARY(softplus_backward, -expm1(-x) * y)
