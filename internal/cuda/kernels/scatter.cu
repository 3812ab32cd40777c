// Sums of what an index sends to the same place. Uses are sorted by their place, by one
// digit of eight bits after the other, so that those of a place stay in their order; then
// each place's are added up by one thread for each column.
#include "index.cuh"

// Uses are the elements of index: rows of a table, or, with each, places in lanes that have
// k uses and n elements, inner apart.
struct Uses {
  Index index;
  i64 count, k, n, inner, each;
  __device__ i64 place(i64 use) const {
    i64 row = index[use];
    return each ? (use / (k * inner) * n + row) * inner + use % inner : row;
  }
};

// number is use i in an order, which is null at first.
__device__ inline i64 number(const i64 *order, i64 i) { return order ? order[i] : i; }

// digits are those of a block's uses; more is none's.
__device__ inline int digitOf(const Uses &u, const i64 *order, int shift, int *digits, i64 *use) {
  i64 i = index();
  int d = 256;
  if (i < u.count) {
    *use = number(order, i);
    d = (int)(u.place(*use) >> shift & 255);
  }
  digits[threadIdx.x] = d;
  __syncthreads();
  return d;
}

// scattercount says how many uses of each block have each digit.
KERNEL scattercount(Uses u, const i64 *order, int shift, i64 *counts) {
  __shared__ int digits[256];
  i64 use, n = 0;
  digitOf(u, order, shift, digits, &use);
  for (int i = 0, t = threadIdx.x; i < 256; i++) n += digits[i] == t;
  counts[(i64)blockIdx.x * 256 + threadIdx.x] = n;
}

// scatterscan makes counts the places where each block's uses of each digit go.
KERNEL scatterscan(i64 blocks, i64 *counts) {
  __shared__ i64 totals[256];
  int t = threadIdx.x;
  i64 at = 0;
#pragma unroll 4
  for (i64 b = 0; b < blocks; b++) at += counts[b * 256 + t];
  totals[t] = at;
  __syncthreads();
  at = 0;
  for (int i = 0; i < t; i++) at += totals[i];
#pragma unroll 4
  for (i64 b = 0; b < blocks; b++) {
    i64 n = counts[b * 256 + t];
    counts[b * 256 + t] = at;
    at += n;
  }
}

KERNEL scatterplace(Uses u, const i64 *order, int shift, const i64 *counts, i64 *to) {
  __shared__ int digits[256];
  i64 use = 0;
  int d = digitOf(u, order, shift, digits, &use);
  if (d == 256) return;
  i64 at = counts[(i64)blockIdx.x * 256 + d];
  for (int i = 0, t = threadIdx.x; i < t; i++) at += digits[i] == d;
  to[at] = use;
}

// scattersum: the first use of a place adds up all of them, from dy [outer k inner] to dx
// [outer n inner], whose other places have been cleared. wide threads work on a place.
#define SUM(T, S)                                                                                                        \
  KERNEL scattersum##S(Uses u, const i64 *order, i64 outer, i64 k, i64 n, i64 inner, i64 padding, int wide,              \
                       const T *dy, T *dx) {                                                                             \
    i64 first = (i64)blockIdx.x * (blockDim.x / wide) + threadIdx.x / wide;                                              \
    if (first >= u.count) return;                                                                                        \
    i64 place = u.place(number(order, first));                                                                           \
    if (place == padding || (first > 0 && u.place(number(order, first - 1)) == place)) return;                           \
    /* The last use is between in, which is one, and out, by steps that double and halve. */                             \
    i64 in = first, out = u.count, step = 1;                                                                             \
    for (; in + step < out && u.place(number(order, in + step)) == place; step *= 2) in += step;                         \
    if (in + step < out) out = in + step;                                                                                \
    while (out - in > 1) {                                                                                               \
      i64 mid = in + (out - in) / 2;                                                                                     \
      if (u.place(number(order, mid)) == place) in = mid;                                                                \
      else out = mid;                                                                                                    \
    }                                                                                                                    \
    for (i64 c = (i64)blockIdx.y * wide + threadIdx.x % wide; c < outer * inner; c += (i64)gridDim.y * wide) {           \
      i64 row = c / inner, col = c % inner;                                                                              \
      Acc<T> sum = 0;                                                                                                    \
      _Pragma("unroll 4") for (i64 i = first; i < out; i++)                                                              \
          sum += load(dy + (row * k + number(order, i)) * inner + col);                                                  \
      store(dx + (row * n + place) * inner + col, sum);                                                                  \
    }                                                                                                                    \
  }
FLOATS(SUM)
