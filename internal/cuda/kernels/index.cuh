// Index tensors of either type.
#pragma once
#include "common.cuh"

struct Index {
  const void *data;
  i64 wide; // i64, else i32
  __device__ i64 operator[](i64 i) const { return wide ? ((const i64 *)data)[i] : ((const i32 *)data)[i]; }
};
