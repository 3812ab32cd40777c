// Kernels over many arrays at once, which stand in a table among the parameters: no copy
// goes before the launch, and no array is too small to be worth one.
#pragma once
#include "common.cuh"

// Table has up to N entries, each with the number of the first block that works on it. All
// parameters of a kernel have room in 4 KB. Go's table makes it.
template <class Entry, int N> struct Table {
  i64 count;
  Entry of[N];
  // mine is this block's entry. A copy of the whole table would lie in local memory.
  __device__ Entry mine() const {
    int i = 0;
#pragma unroll
    for (int half = 64; half > 0; half /= 2)
      if (i + half < count && of[i + half].first <= (int)blockIdx.x) i += half;
    return of[i];
  }
};
