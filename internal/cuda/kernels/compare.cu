#include "elementwise.cuh"

#define COMPARE(T, S, NAME, ...) BINARY_TO(b8, T, T, S, NAME, __VA_ARGS__)

OVER_TYPES(COMPARE, equal, x == y)
OVER_TYPES(COMPARE, not_equal, x != y)
OVER_TYPES(COMPARE, less, x < y)
OVER_TYPES(COMPARE, less_or_equal, x <= y)
UNARY_OF(b8, _b8, not, x == 0)
