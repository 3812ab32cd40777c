// Kernels of the stand-in's own tests.
#include "simcuda.h"

extern "C" __global__ void axpy(long long n, float a, const float *x, float *y) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

// Every block writes the sum of its part of x.
extern "C" __global__ void block_sum(long long n, const float *x, float *out) {
  __shared__ float s[256];
  int t = threadIdx.x;
  long long i = (long long)blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0;
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    __syncthreads();
    if (t < k) s[t] += s[t + k];
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// Turns each block's elements round; without the barrier it would read what is not there yet.
extern "C" __global__ void turn(float *x, int barrier) {
  DYNAMIC_SHARED(float, s);
  int t = threadIdx.x, n = blockDim.x;
  x += (long long)blockIdx.x * n;
  s[t] = x[t];
  if (barrier) __syncthreads();
  x[t] = s[n - 1 - t];
}

extern "C" __global__ void diverge(float *x) {
  if (threadIdx.x < 3) __syncthreads();
  x[threadIdx.x] = 1;
}

extern "C" __global__ void at(float *x, long long i) { x[i] = 1; }

extern "C" __global__ void deep(float **table, int i) { *table[i] = 1; }

extern "C" __global__ void vectors(float4 *x) { *x = make_float4(1, 2, 3, 4); }

extern "C" __global__ void place(unsigned *out) {
  unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned i = b * blockDim.x * blockDim.y * blockDim.z + t;
  out[i] = i;
}
