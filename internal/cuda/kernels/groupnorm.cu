// A block normalizes one row: a group of channels of one sample, or what a layer norm
// normalizes together. It reads the row twice, the second time from the cache.
#include "channels.cuh"

// Group is where a row's elements and channels are.
struct Group {
  i64 row, begin, channel, width, inner;
  __device__ Group(i64 count, i64 per, i64 inner)
      : row(blockIdx.x), begin(row * per * inner), channel(row % count * per), width(per * inner), inner(inner) {}
  // each runs f(i, channel) for all elements of this thread.
  template <class F> __device__ void each(F f) const {
    if (threadIdx.x >= width) return;
    i64 i = threadIdx.x;
    for (Walk at(i, inner, blockDim.x); i < width; i += blockDim.x, at.next()) f(begin + i, channel + at.row);
  }
};

template <class X>
__device__ inline void groupNorm(X x, const Operand &weight, const Operand &bias, X y, typename X::A *means, typename X::A *inverses,
                                 i64 count, i64 per, i64 inner, double eps) {
  typedef typename X::A A;
  __shared__ Pair s[256];
  Group g(count, per, inner);
  A first = g.width > 0 ? x.get(g.begin) : A(0), a = 0, b = 0;
  g.each([&](i64 i, i64) {
    A d = x.get(i) - first;
    a += d, b += d * d;
  });
  Pair sums = {(double)a, (double)b};
  sums = blockSum(sums, s);
  double m = g.width > 0 ? (double)g.width : 1, d = sums.a / m, variance = sums.b / m - d * d;
  A mean = (A)((double)first + d), inverse = (A)(1 / sqrt((variance < 0 ? 0 : variance) + eps));
  if (threadIdx.x == 0) means[g.row] = mean, inverses[g.row] = inverse;
  g.each([&](i64 i, i64 channel) { y.put(i, (x.get(i) - mean) * (inverse * weight.get<A>(channel)) + bias.get<A>(channel)); });
}

// With h = dy·weight and x̂ = (x − mean)·inverse, dx = inverse·(h − mean(h) − x̂·mean(h·x̂)).
template <class X>
__device__ inline void groupNormBackward(X x, const Operand &weight, const Operand &means, const Operand &inverses, X dy, X dx,
                                         i64 count, i64 per, i64 inner) {
  typedef typename X::A A;
  __shared__ Pair s[256];
  Group g(count, per, inner);
  A mean = means.get<A>(g.row), inverse = inverses.get<A>(g.row), a = 0, b = 0;
  g.each([&](i64 i, i64 channel) {
    A h = dy.get(i) * weight.get<A>(channel);
    a += h, b += h * (x.get(i) - mean);
  });
  Pair sums = {(double)a, (double)b};
  sums = blockSum(sums, s);
  double m = (double)g.width, k = inverse;
  A p = (A)(-sums.b * k * k * k / m), q = (A)(-sums.a * k / m);
  g.each([&](i64 i, i64 channel) { dx.put(i, inverse * (dy.get(i) * weight.get<A>(channel)) + p * (x.get(i) - mean) + q); });
}

// groupNormSums sums each channel's dy, and dy·x̂.
template <class X>
__device__ inline void groupNormSums(X x, const Operand &means, const Operand &inverses, X dy, i64 n, i64 c, i64 inner, i64 count, Pair *sums) {
  typedef typename X::A A;
  i64 group = ownChannel(inner) / (c / count);
  channelSums<A>(n, c, inner, sums, [&](i64 row, i64 i, A &a, A &b) {
    A g = dy.get(i);
    i64 r = row * count + group;
    a += g, b += g * (x.get(i) - means.get<A>(r)) * inverses.get<A>(r);
  });
}

#define GROUPNORM(X, suffix)                                                                                         \
  KERNEL group_norm##suffix(Operand x, Operand weight, Operand bias, Operand y, X::A *mean, X::A *inverse, i64 count, \
                            i64 per, i64 inner, double eps) {                                                        \
    groupNorm(X(x), weight, bias, X(y), mean, inverse, count, per, inner, eps);                                      \
  }                                                                                                                  \
  KERNEL group_norm_backward##suffix(Operand x, Operand weight, Operand mean, Operand inverse, Operand dy,           \
                                     Operand dx, i64 count, i64 per, i64 inner) {                                    \
    groupNormBackward(X(x), weight, mean, inverse, X(dy), X(dx), count, per, inner);                                 \
  }                                                                                                                  \
  KERNEL group_norm_sums##suffix(Operand x, Operand mean, Operand inverse, Operand dy, i64 n, i64 c, i64 inner,      \
                                 i64 count, Pair *sums) {                                                            \
    groupNormSums(X(x), mean, inverse, X(dy), n, c, inner, count, sums);                                             \
  }
ACCESSES(GROUPNORM)

KERNEL group_norm_parameters(i64 c, const Pair *sums, i64 parts, Operand dweight, Operand dbias) {
  i64 i = index();
  if (i >= c) return;
  Pair s = channelSum(sums, parts, c, i);
  dweight.put<double>(i, s.b);
  dbias.put<double>(i, s.a);
}
