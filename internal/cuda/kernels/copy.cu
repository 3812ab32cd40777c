#include "elementwise.cuh"

// Elements are copied as bits.
struct bits16 { unsigned short v; };
__device__ inline i64 load(const bits16 *p) { return p->v; }
__device__ inline void store(bits16 *p, i64 v) { p->v = (unsigned short)v; }

UNARY_TO(u8, u8, _1, copy, x)
UNARY_TO(bits16, bits16, _2, copy, x)
UNARY_TO(i32, i32, _4, copy, x)
UNARY_TO(i64, i64, _8, copy, x)

// transpose copies a tile of rows, neighbours in the input, and columns, neighbours in the
// output. rest is of the other dimensions.
template <class T>
__device__ inline void transpose(i64 rows, i64 cols, i64 outStride, i64 inStride, const Walk<2> &rest, T *out, const T *in) {
  __shared__ T tile[32][33]; // columns lie in different banks
  i64 down = (rows + 31) / 32, right = (cols + 31) / 32, b = blockIdx.x, off[2];
  i64 row = b % down * 32, col = b / down % right * 32;
  rest.at(b / down / right, off);
  for (int j = threadIdx.y; j < 32; j += 8)
    if (row + threadIdx.x < rows && col + j < cols)
      tile[j][threadIdx.x] = in[off[1] + row + threadIdx.x + (col + j) * inStride];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (row + i < rows && col + threadIdx.x < cols)
      out[off[0] + (row + i) * outStride + col + threadIdx.x] = tile[threadIdx.x][i];
}

#define TRANSPOSE(T, S)                                                                                           \
  KERNEL transpose##S(i64 rows, i64 cols, i64 outStride, i64 inStride, Walk<2> rest, T *out, const T *in) { \
    transpose(rows, cols, outStride, inStride, rest, out, in);                                                    \
  }
TRANSPOSE(u8, _1)
TRANSPOSE(unsigned short, _2)
TRANSPOSE(i32, _4)
TRANSPOSE(i64, _8)

// convert is v as an R is computed in. Integers become floats by way of float64, so that
// they are rounded as on the host; what is not 0 is true.
template <class R> struct Convert {
  template <class V> static __device__ Acc<R> of(V v) { return (Acc<R>)v; }
  static __device__ Acc<R> of(i64 v) { return (Acc<R>)(double)v; }
};
template <> struct Convert<i64> { template <class V> static __device__ i64 of(V v) { return (i64)v; } };
template <> struct Convert<i32> : Convert<i64> {};
template <> struct Convert<u8> : Convert<i64> {};
template <> struct Convert<b8> { template <class V> static __device__ i64 of(V v) { return v != 0; } };

#define FILL(T, S)                                                                    \
  KERNEL fill##S(i64 n, int dense, Walk<1> walk, double value, double, T *out) {      \
    each<16 / sizeof(T)>(n, dense, walk, [=] { return Convert<T>::of(value); }, out); \
  }
TYPES(FILL)

// cast_f32_b16 is from float32 to bfloat16. A thread takes as many elements as make 16
// bytes of the smaller type, so that both are read and written 16 bytes at a time.
#define CAST(R, TO, T, FROM)                                                                               \
  KERNEL cast##FROM##TO(i64 n, int dense, Walk<2> walk, double, double, R *out, const T *px) {             \
    each<16 / (sizeof(R) < sizeof(T) ? sizeof(R) : sizeof(T))>(                                            \
        n, dense, walk, [=](Acc<T> x) { return Convert<R>::of(x); }, out, In<1, T>{px});                   \
  }
#define CASTS(T, FROM)                                                                                     \
  CAST(float, _f32, T, FROM) CAST(double, _f64, T, FROM) CAST(b16, _b16, T, FROM) CAST(f16, _f16, T, FROM) \
  CAST(i64, _i64, T, FROM) CAST(i32, _i32, T, FROM) CAST(u8, _u8, T, FROM) CAST(b8, _b8, T, FROM)
TYPES(CASTS)
