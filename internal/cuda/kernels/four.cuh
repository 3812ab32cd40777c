// Kernels whose threads take four neighbouring elements: number i holds elements 4i to
// 4i+3, of which count exist.
#pragma once
#include "elementwise.cuh"

#define EACH_FOUR(i, count, n)                                                                        \
  for (i64 i = index(), count; 4 * i < n && (count = n - 4 * i < 4 ? n - 4 * i : 4) > 0; i += span())

template <class T> __device__ inline void loadFour(Acc<T> (&v)[4], const T *p, i64 i, i64 count, int dense) {
  if (dense && count == 4) {
    Pack<T, 4> x = ((const Pack<T, 4> *)p)[i];
    for (int k = 0; k < 4; k++) v[k] = load(&x.v[k]);
    return;
  }
  for (int k = 0; k < 4; k++) v[k] = k < count ? load(p + 4 * i + k) : Acc<T>(0);
}

template <class T> __device__ inline void storeFour(T *p, const Acc<T> (&v)[4], i64 i, i64 count, int dense) {
  if (dense && count == 4) {
    Pack<T, 4> x;
    for (int k = 0; k < 4; k++) store(&x.v[k], v[k]);
    ((Pack<T, 4> *)p)[i] = x;
    return;
  }
  for (int k = 0; k < count; k++) store(p + 4 * i + k, v[k]);
}
