#include "four.cuh"
#include "philox.cuh"

// Elements below limit, p·2²⁴, of [0, 2²⁴) are dropped.
#define DROPOUT(T, S)                                                                           \
  KERNEL dropout##S(i64 n, int dense, Key key, i64 limit, double scale, T *out, const T *in) {  \
    EACH_FOUR(i, count, n) {                                                                    \
      Bits bits = philox(key, i);                                                               \
      Acc<T> v[4];                                                                              \
      loadFour(v, in, i, count, dense);                                                         \
      for (int k = 0; k < 4; k++) v[k] = bits.v[k] >> 8 < limit ? 0 : v[k] * Acc<T>(scale);     \
      storeFour(out, v, i, count, dense);                                                       \
    }                                                                                           \
  }
FLOATS(DROPOUT)

__device__ inline double unit(unsigned bits) { return (bits >> 8) * (1.0 / (1 << 24)); }

#define UNIFORM(T, S)                                                                           \
  KERNEL uniform##S(i64 n, int dense, Key key, double scale, double shift, T *out) {            \
    EACH_FOUR(i, count, n) {                                                                    \
      Bits bits = philox(key, i);                                                               \
      Acc<T> v[4];                                                                              \
      for (int k = 0; k < 4; k++) v[k] = Acc<T>(unit(bits.v[k]) * scale + shift);               \
      storeFour(out, v, i, count, dense);                                                       \
    }                                                                                           \
  }
FLOATS(UNIFORM)

// Normal numbers come in pairs (Box and Muller, 1958).
#define NORMAL(T, S)                                                                            \
  KERNEL normal##S(i64 n, int dense, Key key, double scale, double shift, T *out) {             \
    EACH_FOUR(i, count, n) {                                                                    \
      Bits bits = philox(key, i);                                                               \
      Acc<T> v[4];                                                                              \
      for (int k = 0; k < 4; k += 2) {                                                          \
        double r = sqrt(-2 * log(1 - unit(bits.v[k])));                                         \
        double turn = 2 * 3.14159265358979323846 * unit(bits.v[k + 1]);                         \
        v[k] = Acc<T>(r * cos(turn) * scale + shift);                                           \
        v[k + 1] = Acc<T>(r * sin(turn) * scale + shift);                                       \
      }                                                                                         \
      storeFour(out, v, i, count, dense);                                                       \
    }                                                                                           \
  }
FLOATS(NORMAL)
