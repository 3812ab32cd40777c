// What the driver calls in kernels.so.
#pragma once
#include <stddef.h>

struct SimKernel;
struct SimDim { unsigned x, y, z; };

extern "C" {
// simcuda_blocks runs blocks lo to hi on this thread. It returns 1 where only some
// threads of a block reached a barrier.
int simcuda_blocks(const SimKernel *, SimDim grid, SimDim block, size_t lo, size_t hi, unsigned shared, bool down, void **params);

// simcuda_abandon makes this thread usable again after a jump out of simcuda_blocks.
void simcuda_abandon();
}
