#include "elementwise.cuh"

UNARY(clamp, smaller(greater(x, A(p)), A(q)))
BINARY(clamp_backward, A(p) < x && x < A(q) ? y : A(0))
UNARY(hardswish, x * smaller(greater(x + 3, A(0)), A(6)) * A(1.0 / 6))
BINARY(hardswish_backward, x <= -3 ? A(0) : x >= 3 ? y : y * (2 * x + 3) * A(1.0 / 6))
UNARY(abs, greater(x, -x))
BINARY(abs_backward, x > 0 ? y : x < 0 ? -y : A(0))
