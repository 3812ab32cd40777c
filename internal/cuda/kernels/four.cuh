// Kernels that take four neighbouring elements at a time, as Philox makes numbers: where
// all operands are dense as vectors, else one by one.
#pragma once
#include "elementwise.cuh"

// byFour calls fn(Few<N>(), i) for elements i to i+N−1, N being 4, and 1 for what is left.
template <int N> struct Few { enum { count = N }; };
template <class F> __device__ inline void byFour(i64 n, int dense, F fn) {
  i64 done = dense ? n / 4 * 4 : 0;
  for (i64 i = 4 * index(); i < done; i += 4 * span()) fn(Few<4>(), i);
  for (i64 i = done + index(); i < n; i += span()) fn(Few<1>(), i);
}

// These read and write elements i to i+N−1, which are computed in A.
template <class A, class T, int N> __device__ inline void loadFew(A (&v)[N], const T *p, i64 i) {
  Pack<T, N> x = *(const Pack<T, N> *)(p + i);
  for (int k = 0; k < N; k++) v[k] = load(&x.v[k]);
}

template <class A, class T, int N> __device__ inline void storeFew(T *p, const A (&v)[N], i64 i) {
  Pack<T, N> x;
  for (int k = 0; k < N; k++) store(&x.v[k], Acc<T>(v[k]));
  *(Pack<T, N> *)(p + i) = x;
}
