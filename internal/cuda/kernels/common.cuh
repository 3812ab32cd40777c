// What all kernels share. They are compiled by nvcc to PTX and, for the simulated device,
// by g++ with threads as fibers: no warp-level functions but those that stand here, no
// atomics on floats (results must be the same bits every time), no printf.
#pragma once

#ifdef SIMCUDA
#include "simcuda.h" // __global__, threadIdx, __syncthreads and so on for the host
#endif
#include <math.h>

typedef long long i64;
typedef int i32;
typedef unsigned char u8;
struct b8 { unsigned char v; };   // bool: 0 or 1
struct b16 { unsigned short v; }; // bfloat16: the upper half of a float32
struct f16 { unsigned short v; }; // IEEE binary16

#define KERNEL extern "C" __global__ void

// The four float types, and all, with the endings of kernels' names.
#define FLOATS(M) M(float, _f32) M(double, _f64) M(b16, _b16) M(f16, _f16)
#define TYPES(M) FLOATS(M) M(i64, _i64) M(i32, _i32) M(u8, _u8) M(b8, _b8)

// Acc is the type that elements are computed in.
template <class T> struct AccOf { typedef float type; };
template <> struct AccOf<double> { typedef double type; };
template <> struct AccOf<i64> { typedef i64 type; };
template <> struct AccOf<i32> { typedef i64 type; };
template <> struct AccOf<u8> { typedef i64 type; };
template <> struct AccOf<b8> { typedef i64 type; };
template <class T> using Acc = typename AccOf<T>::type;

__device__ inline float bitsToFloat(unsigned u) { union { unsigned u; float f; } x; x.u = u; return x.f; }
__device__ inline unsigned floatToBits(float f) { union { unsigned u; float f; } x; x.f = f; return x.u; }

// load widens an element, store rounds to the nearest, ties to even; a NaN stays one.
__device__ inline float load(const float *p) { return *p; }
__device__ inline double load(const double *p) { return *p; }
__device__ inline i64 load(const i64 *p) { return *p; }
__device__ inline i64 load(const i32 *p) { return *p; }
__device__ inline i64 load(const u8 *p) { return *p; }
__device__ inline i64 load(const b8 *p) { return p->v; }
__device__ inline float load(const b16 *p) { return bitsToFloat((unsigned)p->v << 16); }

__device__ inline void store(float *p, float v) { *p = v; }
__device__ inline void store(double *p, double v) { *p = v; }
__device__ inline void store(i64 *p, i64 v) { *p = v; }
__device__ inline void store(i32 *p, i64 v) { *p = (i32)v; }
__device__ inline void store(u8 *p, i64 v) { *p = (u8)v; }
__device__ inline void store(b8 *p, i64 v) { p->v = v != 0; }
__device__ inline void store(b16 *p, float v) {
  unsigned u = floatToBits(v);
  p->v = (u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// Cards round to float16 by themselves; the simulated device does it as driver.ToF16.
#ifdef __CUDA_ARCH__
__device__ inline float load(const f16 *p) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(p->v)); return f; }
__device__ inline void store(f16 *p, float v) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->v) : "f"(v)); }
#else
__device__ inline float load(const f16 *p) {
  unsigned h = p->v, sign = h >> 15 << 31, exp = h >> 10 & 0x1f, frac = h & 0x3ff;
  if (exp == 0) return bitsToFloat(sign | floatToBits((float)frac * (1.0f / 16777216)));
  if (exp == 0x1f) return bitsToFloat(sign | 0x7f800000 | frac << 13);
  return bitsToFloat(sign | (exp + 112) << 23 | frac << 13);
}
__device__ inline void store(f16 *p, float v) {
  unsigned u = floatToBits(v), sign = u >> 16 & 0x8000;
  u &= 0x7fffffff;
  if (u > 0x7f800000) p->v = sign | 0x7e00;
  else if (u >= 0x47800000) p->v = sign | 0x7c00;
  else if (u < 0x38800000) p->v = sign | (floatToBits(bitsToFloat(u) + 0.5f) - 0x3f000000);
  else p->v = sign | (u - (112u << 23) + 0xfff + (u >> 13 & 1)) >> 13;
}
#endif

// mad is a·b + c, rounded once.
__device__ inline float mad(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double mad(double a, double b, double c) { return fma(a, b, c); }

// Layout is how an array's elements lie, counted row-major in the shape that it has or is
// broadcast to. Go's layout makes it.
struct Layout {
  i64 rank, shape[8], strides[8];
  // Unrolled: a parameter that is indexed by a variable is copied to local memory first.
  __device__ i64 at(i64 i) const {
    if (rank <= 1) return i * strides[0];
    i64 off = 0;
#pragma unroll
    for (int d = 7; d > 0; d--)
      if (d < rank) {
        i64 q = i / shape[d];
        off += (i - q * shape[d]) * strides[d];
        i = q;
      }
    return off + i * strides[0];
  }
};

// Operand is an array whose type is known only when the kernel runs, as the type A that is
// computed in. Go's operand makes it; type counts as driver.DType does.
struct Operand {
  void *data;
  i64 type;
  Layout layout;
  template <class A> __device__ A get(i64 i) const {
    i = layout.at(i);
    switch (type) {
    case 0: return (A)load((const float *)data + i);
    case 1: return (A)load((const double *)data + i);
    case 2: return (A)load((const b16 *)data + i);
    case 3: return (A)load((const f16 *)data + i);
    case 4: return (A)load((const i64 *)data + i);
    case 5: return (A)load((const i32 *)data + i);
    }
    return (A)load((const u8 *)data + i);
  }
  template <class A> __device__ void put(i64 i, A v) const {
    i = layout.at(i);
    switch (type) {
    case 0: return store((float *)data + i, (float)v);
    case 1: return store((double *)data + i, (double)v);
    case 2: return store((b16 *)data + i, (float)v);
    case 3: return store((f16 *)data + i, (float)v);
    case 4: return store((i64 *)data + i, (i64)v);
    case 5: return store((i32 *)data + i, (i64)v);
    case 6: return store((u8 *)data + i, (i64)v);
    }
    ((b8 *)data + i)->v = v != 0;
  }
};

// index is the number of this thread in a grid of one dimension, span how many there are.
__device__ inline i64 index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 span() { return (i64)gridDim.x * blockDim.x; }

// blockSum adds up what the threads of a block of one dimension have, always in the same
// order; all of them get the sum. s has room for blockDim.x values, a power of two.
template <class T> __device__ inline T blockSum(T v, T *s) {
  int t = threadIdx.x;
  __syncthreads(); // s may still be read
  s[t] = v;
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    __syncthreads();
    if (t < k) s[t] += s[t + k];
  }
  __syncthreads();
  return s[0];
}

// blockMax is the same for the largest; a NaN is larger than all.
template <class T> __device__ inline T blockMax(T v, T *s) {
  int t = threadIdx.x;
  __syncthreads();
  s[t] = v;
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    __syncthreads();
    if (t < k && !(s[t] >= s[t + k]) && s[t] == s[t]) s[t] = s[t + k];
  }
  __syncthreads();
  return s[0];
}
