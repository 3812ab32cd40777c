#include "elementwise.cuh"

BINARY(mul, x * y)
