#include "four.cuh"
#include "philox.cuh"

// Element i is made of number i%4 of block i/4. four gets all of a block's numbers as
// values, and gives back those that belong to elements i to i+N−1.
template <int N, class V> __device__ inline void take(V (&v)[N], const V (&four)[4], i64 i) {
  for (int k = 0; k < N; k++) v[k] = four[k];
  if (N == 1) v[0] = i % 4 < 2 ? i % 4 == 0 ? four[0] : four[1] : i % 4 == 2 ? four[2] : four[3];
}

// Elements whose number in [0, 2²⁴) is below limit are dropped.
#define DROPOUT(T, S)                                                                            \
  KERNEL dropout##S(i64 n, int dense, Key key, i64 limit, double scale, T *out, const T *in) {   \
    byFour(n, dense, [=](auto few, i64 i) {                                                      \
      const int N = decltype(few)::count;                                                        \
      unsigned bits[N];                                                                          \
      Acc<T> v[N];                                                                               \
      take(bits, philox(key, i / 4).v, i);                                                       \
      loadFew(v, in, i);                                                                         \
      for (int k = 0; k < N; k++) v[k] = bits[k] >> 8 < limit ? 0 : v[k] * Acc<T>(scale);        \
      storeFew(out, v, i);                                                                       \
    });                                                                                          \
  }
FLOATS(DROPOUT)

__device__ inline double unit(unsigned bits) { return (bits >> 8) * (1.0 / (1 << 24)); }

struct Uniform {
  static __device__ void of(Bits bits, double (&v)[4]) {
    for (int k = 0; k < 4; k++) v[k] = unit(bits.v[k]);
  }
};

// Normal numbers come in pairs (Box and Muller, 1958).
struct Normal {
  static __device__ void of(Bits bits, double (&v)[4]) {
    for (int k = 0; k < 4; k += 2) {
      double r = sqrt(-2 * log(1 - unit(bits.v[k]))), turn = 2 * 3.14159265358979323846 * unit(bits.v[k + 1]);
      v[k] = r * cos(turn);
      v[k + 1] = r * sin(turn);
    }
  }
};

template <class Distribution, class T>
__device__ inline void draw(i64 n, int dense, Key key, double scale, double shift, T *out) {
  byFour(n, dense, [=](auto few, i64 i) {
    double four[4], v[decltype(few)::count];
    Distribution::of(philox(key, i / 4), four);
    take(v, four, i);
    for (double &x : v) x = x * scale + shift;
    storeFew(out, v, i);
  });
}

#define DRAW(T, S)                                                                      \
  KERNEL uniform##S(i64 n, int dense, Key key, double scale, double shift, T *out) {    \
    draw<Uniform>(n, dense, key, scale, shift, out);                                    \
  }                                                                                     \
  KERNEL normal##S(i64 n, int dense, Key key, double scale, double shift, T *out) {     \
    draw<Normal>(n, dense, key, scale, shift, out);                                     \
  }
FLOATS(DRAW)
