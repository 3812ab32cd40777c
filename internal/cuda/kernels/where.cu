#include "elementwise.cuh"

#define WHERE(T, S, NAME, ...) TERNARY_TO(T, T, b8, S, NAME, __VA_ARGS__)
#define MASKED(T, S, NAME, ...) BINARY_TO(T, T, b8, S, NAME, __VA_ARGS__)

OVER_TYPES(WHERE, where, z ? x : y)
OVER_TYPES(MASKED, masked_fill, (y != 0) == (q != 0) ? A(p) : x)
