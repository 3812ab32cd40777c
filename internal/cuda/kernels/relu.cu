#include "elementwise.cuh"

UNARY(relu, greater(x, A(0)))
BINARY(relu_backward, x > 0 ? y : A(0))
