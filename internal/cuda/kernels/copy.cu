#include "elementwise.cuh"

// Elements are copied as bits.
struct bits16 { unsigned short v; };
__device__ inline i64 load(const bits16 *p) { return p->v; }
__device__ inline void store(bits16 *p, i64 v) { p->v = (unsigned short)v; }

UNARY_TO(u8, u8, _1, copy, x)
UNARY_TO(bits16, bits16, _2, copy, x)
UNARY_TO(i32, i32, _4, copy, x)
UNARY_TO(i64, i64, _8, copy, x)

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
