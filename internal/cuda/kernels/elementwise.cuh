// Operations that go element by element: UNARY(name, expression of x), BINARY(…, of x
// and y) and TERNARY(…, of x, y and z) make a kernel for each float type. A is the type
// that elements are computed in; p and q are the kernel's numbers.
#pragma once
#include "common.cuh"

// Pack is N elements that lie side by side, read and written 16 bytes at a time.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T v[N]; };

// Walk is how the elements of N operands lie, in the order of the output's, which is the
// first of them. Go's walk makes it.
template <int N> struct Walk {
  i64 rank, shape[8], strides[N][8];
  __device__ void at(i64 i, i64 (&off)[N]) const {
    for (int k = 0; k < N; k++) off[k] = 0;
#pragma unroll
    for (int d = 7; d > 0; d--)
      if (d < rank) {
        i64 q = i / shape[d], r = i - q * shape[d];
        for (int k = 0; k < N; k++) off[k] += r * strides[k][d];
        i = q;
      }
    for (int k = 0; k < N; k++) off[k] += i * strides[k][0];
  }
};

// In is input K, counted from 1.
template <int K, class T> struct In { const T *p; };

template <class R, int N, class F, class... X>
__device__ inline Pack<R, N> packed(F f, Pack<X, N>... in) {
  Pack<R, N> out;
  for (int k = 0; k < N; k++) store(&out.v[k], f(load(&in.v[k])...));
  return out;
}

// each computes n elements, N of them at a time where all operands are dense: without
// gaps, and from a multiple of 16 bytes on.
template <int N, int Operands, class R, class F, int... K, class... X>
__device__ inline void each(i64 n, int dense, const Walk<Operands> &walk, F f, R *out, In<K, X>... in) {
  i64 done = 0;
  if (dense) {
    done = n / N * N;
    for (i64 i = index(); i < n / N; i += span())
      ((Pack<R, N> *)out)[i] = packed<R, N>(f, ((const Pack<X, N> *)in.p)[i]...);
  }
  for (i64 i = done + index(); i < n; i += span()) {
    i64 off[Operands];
    walk.at(i, off);
    store(out + off[0], f(load(in.p + off[K])...));
  }
}

#define OVER_FLOATS(M, ...) \
  M(float, _f32, __VA_ARGS__) M(double, _f64, __VA_ARGS__) M(b16, _b16, __VA_ARGS__) M(f16, _f16, __VA_ARGS__)
#define OVER_TYPES(M, ...) \
  OVER_FLOATS(M, __VA_ARGS__) M(i64, _i64, __VA_ARGS__) M(i32, _i32, __VA_ARGS__) M(u8, _u8, __VA_ARGS__) M(b8, _b8, __VA_ARGS__)

#define UNARY(...) OVER_FLOATS(UNARY_OF, __VA_ARGS__)
#define BINARY(...) OVER_FLOATS(BINARY_OF, __VA_ARGS__)
#define TERNARY(...) OVER_FLOATS(TERNARY_OF, __VA_ARGS__)

#define UNARY_OF(T, S, NAME, ...) UNARY_TO(T, T, S, NAME, __VA_ARGS__)
#define BINARY_OF(T, S, NAME, ...) BINARY_TO(T, T, T, S, NAME, __VA_ARGS__)
#define TERNARY_OF(T, S, NAME, ...) TERNARY_TO(T, T, T, S, NAME, __VA_ARGS__)

// From an input x of T, y of Y and z of Z to an output of R.
#define UNARY_TO(R, T, S, NAME, ...)                                                                  \
  KERNEL NAME##S(i64 n, int dense, Walk<2> walk, double p, double q, R *out, const T *px) {           \
    typedef Acc<T> A;                                                                                 \
    each<16 / sizeof(T)>(n, dense, walk, [=](A x) { return __VA_ARGS__; }, out, In<1, T>{px});        \
  }
#define BINARY_TO(R, T, Y, S, NAME, ...)                                                              \
  KERNEL NAME##S(i64 n, int dense, Walk<3> walk, double p, double q, R *out, const T *px,             \
                 const Y *py) {                                                                       \
    typedef Acc<T> A;                                                                                 \
    each<16 / sizeof(T)>(n, dense, walk, [=](A x, Acc<Y> y) { return __VA_ARGS__; }, out,             \
                         In<1, T>{px}, In<2, Y>{py});                                                 \
  }
#define TERNARY_TO(T, Y, Z, S, NAME, ...)                                                             \
  KERNEL NAME##S(i64 n, int dense, Walk<4> walk, double p, double q, T *out, const T *px,             \
                 const Y *py, const Z *pz) {                                                          \
    typedef Acc<T> A;                                                                                 \
    each<16 / sizeof(T)>(n, dense, walk, [=](A x, Acc<Y> y, Acc<Z> z) { return __VA_ARGS__; }, out,   \
                         In<1, T>{px}, In<2, Y>{py}, In<3, Z>{pz});                                   \
  }

// greater and smaller are NaN where x or y is.
template <class A> __device__ inline A greater(A x, A y) { return x > y || x != x ? x : y; }
template <class A> __device__ inline A smaller(A x, A y) { return x < y || x != x ? x : y; }
