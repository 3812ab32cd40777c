// What batch and group norms share: sums over the elements of each channel of an array
// [n c inner], and how its elements are read.
#pragma once
#include "common.cuh"

// Plain reads and writes an array of T without gaps, N neighbours at a time, Any one of any
// type and strides as A. What they read and write is counted in so many.
template <class T, int N> struct Plain {
  typedef Acc<T> A;
  enum { few = N };
  struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T v[N]; };
  T *data;
  __device__ Plain(const Operand &o) : data((T *)o.data) {}
  __device__ A get(i64 i) const { return load(data + i); }
  __device__ void put(i64 i, A v) const { store(data + i, v); }
  __device__ void read(A (&v)[N], i64 i) const {
    Pack p = ((const Pack *)data)[i];
    for (int k = 0; k < N; k++) v[k] = load(&p.v[k]);
  }
  __device__ void write(i64 i, const A (&v)[N]) const {
    Pack p;
    for (int k = 0; k < N; k++) store(&p.v[k], v[k]);
    ((Pack *)data)[i] = p;
  }
};
template <class T, int N> struct Any {
  typedef T A;
  enum { few = N };
  const Operand &o;
  __device__ Any(const Operand &o) : o(o) {}
  __device__ A get(i64 i) const { return o.get<A>(i); }
  __device__ void put(i64 i, A v) const { o.put<A>(i, v); }
  __device__ void read(A (&v)[N], i64 i) const {
    for (int k = 0; k < N; k++) v[k] = get(i * N + k);
  }
  __device__ void write(i64 i, const A (&v)[N]) const {
    for (int k = 0; k < N; k++) put(i * N + k, v[k]);
  }
};
typedef Plain<float, 1> PlainF32;
typedef Plain<double, 1> PlainF64;
typedef Plain<b16, 1> PlainB16;
typedef Plain<f16, 1> PlainF16;
typedef Any<float, 1> AnyF32;
typedef Any<double, 1> AnyF64;
typedef Plain<float, 4> FourF32;
typedef Plain<double, 4> FourF64;
typedef Plain<b16, 4> FourB16;
typedef Plain<f16, 4> FourF16;
typedef Any<float, 4> AnyFourF32;
typedef Any<double, 4> AnyFourF64;
#define ACCESSES(M) M(PlainF32, _f32) M(PlainF64, _f64) M(PlainB16, _b16) M(PlainF16, _f16) M(AnyF32, _any32) M(AnyF64, _any64)
#define FOURS(M) M(FourF32, _f32x4) M(FourF64, _f64x4) M(FourB16, _b16x4) M(FourF16, _f16x4) M(AnyFourF32, _any32x4) M(AnyFourF64, _any64x4)

// Walk goes through rows of inner elements by a fixed step, without a division for each.
struct Walk {
  i64 row, col, rows, inner;
  int cols;
  __device__ Walk(i64 at, i64 inner, i64 step) : row(at / inner), rows(step / inner), inner(inner) {
    col = at - row * inner, cols = (int)(step - rows * inner);
  }
  __device__ void next() {
    row += rows, col += cols;
    if (col >= inner) col -= inner, row++;
  }
};

// Place is an element of a thread that goes through all of them by the grid, and its channel.
struct Place {
  i64 i, step, total, channel, channels, c;
  Walk at;
  __device__ Place(i64 n, i64 c, i64 inner)
      : i(index()), step(span()), total(n * c * inner), c(c), at(index(), inner, span()) {
    channel = at.row % c, channels = at.rows % c;
  }
  __device__ bool in() const { return i < total; }
  __device__ void next() {
    i64 row = at.row + at.rows;
    i += step, at.next();
    channel += channels + (at.row - row);
    if (channel >= c) channel -= c;
  }
};

// Pair is two sums. Threads add up few elements each, in the type that they are computed
// in; what they have is added in float64.
struct Pair {
  double a, b;
  __device__ Pair &operator+=(const Pair &p) { a += p.a, b += p.b; return *this; }
};

// A block of channelSums takes one channel or, where channels are columns, side of them, so
// that threads side by side read elements side by side.
enum { side = 32 };
__device__ inline int together(i64 inner) { return inner == 1 ? side : 1; }
__device__ inline i64 ownChannel(i64 inner) { return (i64)blockIdx.x * together(inner) + threadIdx.x % together(inner); }

// channelSums adds up what f(row, i, a, b) adds to a and b for each element i, in the row
// of n, of this thread's channel. Parts of all elements are taken by gridDim.y blocks, whose
// sums follow each other: [parts c].
template <class A, class F> __device__ inline void channelSums(i64 n, i64 c, i64 inner, Pair *sums, F f) {
  __shared__ Pair s[256];
  int t = threadIdx.x, wide = together(inner), rows = blockDim.x / wide;
  i64 channel = ownChannel(inner), part = (n * inner + gridDim.y - 1) / gridDim.y, from = blockIdx.y * part;
  i64 to = from + part < n * inner ? from + part : n * inner;
  A a = 0, b = 0;
  from += t / wide;
  if (channel < c && from < to)
    for (Walk at(from, inner, rows); from < to; from += rows, at.next()) f(at.row, (at.row * c + channel) * inner + at.col, a, b);
  s[t].a = a, s[t].b = b;
  for (int k = blockDim.x / 2; k >= wide; k /= 2) {
    __syncthreads();
    if (t < k) s[t] += s[t + k];
  }
  if (t < wide && channel < c) sums[blockIdx.y * c + channel] = s[t];
}

// channelSum adds up a channel's parts, in their order.
__device__ inline Pair channelSum(const Pair *sums, i64 parts, i64 c, i64 channel) {
  Pair p = {0, 0};
  for (i64 i = 0; i < parts; i++) p += sums[i * c + channel];
  return p;
}
