#include "elementwise.cuh"

BINARY(sub, x - y)
UNARY(shift, x + A(p))
BINARY(div, x / y)
TERNARY(div_backward, -z * x / y) // quotient, divisor, the quotient's gradient
