#include "common.cuh"

// Best is the greatest element so far and its number, −1 for none. A NaN is greater than
// all; of equal ones the first wins.
template <class A> struct Best {
  A v;
  i64 at;
  __device__ void take(A w, i64 j) {
    bool mine = v != v, other = w != w;
    bool better = mine != other ? other : w > v;
    bool same = mine ? other : w == v;
    if (j >= 0 && (at < 0 || better || (same && j < at))) v = w, at = j;
  }
};

// extreme finds the best of the n elements of each row, which are inner apart, times sign.
// Neighbouring threads have neighbouring rows or, with a step of 1, elements of a row: as
// in reduce.cuh, lanes threads work on one.
template <class T>
__device__ inline void extreme(i64 rows, i64 n, i64 inner, int lanes, int step, int sign, const T *x, T *out, Operand where) {
  typedef Acc<T> A;
  __shared__ Best<A> s[256];
  int t = threadIdx.x, lane = t / step % lanes;
  i64 row = blockIdx.x * (i64)(256 / lanes) + (step == 1 ? t / lanes : t % step);
  Best<A> best = {0, -1};
  if (row < rows) {
    const T *from = x + row / inner * n * inner + row % inner;
#pragma unroll 4
    for (i64 j = lane; j < n; j += lanes) best.take(load(from + j * inner) * sign, j);
  }
  s[t] = best;
  for (int k = lanes / 2; k > 0; k /= 2) {
    __syncthreads();
    if (lane < k) s[t].take(s[t + k * step].v, s[t + k * step].at);
  }
  if (lane == 0 && row < rows) {
    store(out + row, s[t].v * sign);
    where.put(row, s[t].at);
  }
}

#define EXTREME(T, S)                                                                                        \
  KERNEL extreme##S(i64 rows, i64 n, i64 inner, int lanes, int step, int sign, const T *x, T *out, Operand where) { \
    extreme(rows, n, inner, lanes, step, sign, x, out, where);                                               \
  }                                                                                                          \
  KERNEL extreme_backward##S(i64 count, i64 n, i64 inner, const T *dy, const i32 *where, T *dx) {            \
    for (i64 i = index(); i < count; i += span()) {                                                          \
      i64 row = i / inner / n * inner + i % inner;                                                           \
      store(dx + i, where[row] == i / inner % n ? load(dy + row) : Acc<T>(0));                               \
    }                                                                                                        \
  }
FLOATS(EXTREME)
