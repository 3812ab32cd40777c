// Sums over parts of an array, in float64.
#pragma once
#include "common.cuh"

// Reduction is how n results are made of m values each. lanes threads make one result
// together, those of neighbouring results beside each other or, with a step of 1, those of
// one result. So the one or the other reads memory in its order. Each block has a part of
// each values. Go's reduction makes it.
struct Reduction { i64 n, m, lanes, step, each; };

// reduce adds up values(r)(j) for j from 0 to m−1, for each result r, times scale. Of
// several parts each writes n sums. The order of additions depends on lanes and each alone.
template <class F> __device__ inline void reduce(Reduction d, Operand out, double scale, F values) {
  __shared__ double s[256];
  i64 side = 256 / d.lanes, blocks = (d.n + side - 1) / side;
  i64 part = blockIdx.x / blocks, first = blockIdx.x % blocks * side;
  int t = threadIdx.x;
  i64 lane = t / d.step % d.lanes, r = first + (d.step == 1 ? t / d.lanes : t % d.step);
  double sum = 0;
  if (r < d.n) {
    auto value = values(r);
    i64 end = (part + 1) * d.each < d.m ? (part + 1) * d.each : d.m;
#pragma unroll 4
    for (i64 j = part * d.each + lane; j < end; j += d.lanes) sum += value(j);
  }
  s[t] = sum;
  for (i64 k = d.lanes / 2; k > 0; k /= 2) {
    __syncthreads();
    if (lane < k) s[t] += s[t + k * d.step];
  }
  if (lane == 0 && r < d.n) out.put(part * d.n + r, s[t] * scale);
}
