#include "elementwise.cuh"

UNARY(leaky_relu, x <= 0 ? x * A(p) : x)
BINARY(leaky_relu_backward, x <= 0 ? y * A(p) : y)
UNARY(elu, x <= 0 ? A(p) * expm1(x) : x)
BINARY(elu_backward, x <= 0 ? y * (x + A(p)) : y)
