#include "elementwise.cuh"

UNARY(exp, exp(x))
BINARY(exp_backward, x * y)
UNARY(log, log(x))
BINARY(log_backward, y / x)
UNARY(sqrt, sqrt(x))
BINARY(sqrt_backward, y / (2 * x))
UNARY(square, x * x)
BINARY(square_backward, 2 * x * y)
UNARY(pow, pow(x, A(p)))
BINARY(pow_backward, p == 0 ? A(0) : A(p) * pow(x, A(p - 1)) * y)
