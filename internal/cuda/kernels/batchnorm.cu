#include "channels.cuh"

// mean_sums sums differences from the channel's first element and their squares, so that
// little is cancelled.
template <class X> __device__ inline void meanSums(X x, i64 n, i64 c, i64 inner, Pair *sums) {
  typedef typename X::A A;
  i64 channel = ownChannel(inner);
  A first = channel < c && n * inner > 0 ? x.get(channel * inner) : A(0);
  channelSums<A>(n, c, inner / X::few, sums, [&](i64, i64 i, A &a, A &b) {
    A v[X::few];
    x.read(v, i);
    for (int j = 0; j < X::few; j++) {
      A d = v[j] - first;
      a += d, b += d * d;
    }
  });
}

template <class A>
__device__ inline void meanVariance(const Operand &x, i64 n, i64 c, i64 inner, const Pair *sums, i64 parts, A *mean, A *variance) {
  i64 channel = index(), m = n * inner;
  if (channel >= c) return;
  Pair p = channelSum(sums, parts, c, channel);
  double d = p.a / (m > 0 ? m : 1), v = p.b / (m > 0 ? m : 1) - d * d;
  mean[channel] = (A)((m > 0 ? x.get<double>(channel * inner) : 0) + d);
  variance[channel] = (A)(v < 0 ? 0 : v);
}

// Channel is what a batch norm knows of a channel: x becomes (x − mean)·scale + shift, and
// a gradient g becomes scale·g + p·(x − mean) + q.
template <class A> struct Channel { A mean, scale, shift, p, q; double inverse; };

template <class A>
__device__ inline void channelTable(i64 c, const Operand &mean, const Operand &variance, const Operand &weight, const Operand &bias,
                                    double eps, Channel<A> *table) {
  i64 i = index();
  if (i >= c) return;
  double inverse = 1 / sqrt(variance.get<double>(i) + eps);
  Channel<A> k = {mean.get<A>(i), (A)(weight.get<double>(i) * inverse), bias.get<A>(i), 0, 0, inverse};
  table[i] = k;
}

// normed is a result before it is limited; both passes must see the same.
template <class A> __device__ inline A normed(const Channel<A> &k, A x, bool adds, A add) {
  A v = (x - k.mean) * k.scale + k.shift;
  return adds ? v + add : v;
}

template <class X>
__device__ inline void batchNorm(X x, X add, bool adds, X y, i64 n, i64 c, i64 inner, const Channel<typename X::A> *table, double limit) {
  typedef typename X::A A;
  A most = (A)limit;
  for (Place at(n, c, inner / X::few); at.in(); at.next()) {
    A v[X::few], plus[X::few] = {};
    x.read(v, at.i);
    if (adds) add.read(plus, at.i);
    for (int j = 0; j < X::few; j++) {
      v[j] = normed(table[at.channel], v[j], adds, plus[j]);
      if (most != 0) v[j] = v[j] <= 0 ? A(0) : v[j] > most ? most : v[j];
    }
    y.write(at.i, v);
  }
}

// Gradient is what of dy passes the limit, with x.
template <class X> struct Gradient {
  typedef typename X::A A;
  A x[X::few], g[X::few];
  __device__ Gradient(const Channel<A> &k, X from, X add, bool adds, X dy, A most, i64 i) {
    from.read(x, i);
    dy.read(g, i);
    if (most == 0) return;
    A plus[X::few] = {};
    if (adds) add.read(plus, i);
    for (int j = 0; j < X::few; j++) {
      A v = normed(k, x[j], adds, plus[j]);
      if (!(0 < v && v < most)) g[j] = 0;
    }
  }
};

template <class X>
__device__ inline void backwardSums(X x, X add, bool adds, X dy, i64 n, i64 c, i64 inner, const Channel<typename X::A> *table, double limit, Pair *sums) {
  typedef typename X::A A;
  i64 channel = ownChannel(inner);
  Channel<A> k = table[channel < c ? channel : 0];
  channelSums<A>(n, c, inner / X::few, sums, [&](i64, i64 i, A &a, A &b) {
    Gradient<X> d(k, x, add, adds, dy, (A)limit, i);
    for (int j = 0; j < X::few; j++) a += d.g[j], b += d.g[j] * (d.x[j] - k.mean);
  });
}

// backwardChannels writes the parameters' gradients, and what of them dx needs where mean
// and variance are x's own.
template <class A>
__device__ inline void backwardChannels(i64 m, i64 c, const Pair *sums, i64 parts, bool own, Channel<A> *table, const Operand &dweight, const Operand &dbias) {
  i64 i = index();
  if (i >= c) return;
  Channel<A> &k = table[i];
  Pair s = channelSum(sums, parts, c, i);
  dweight.put<A>(i, (A)(s.b * k.inverse));
  dbias.put<A>(i, (A)s.a);
  if (!own) return;
  k.p = (A)(-(double)k.scale * s.b * k.inverse * k.inverse / m);
  k.q = (A)(-(double)k.scale * s.a / m);
}

template <class X>
__device__ inline void batchNormBackward(X x, X add, bool adds, X dy, X dx, X dadd, bool wanted, i64 n, i64 c, i64 inner,
                                         const Channel<typename X::A> *table, double limit) {
  typedef typename X::A A;
  for (Place at(n, c, inner / X::few); at.in(); at.next()) {
    const Channel<A> &k = table[at.channel];
    Gradient<X> d(k, x, add, adds, dy, (A)limit, at.i);
    if (wanted) dadd.write(at.i, d.g); // where dy lies, maybe, or what was added
    for (int j = 0; j < X::few; j++) d.g[j] = k.scale * d.g[j] + k.p * (d.x[j] - k.mean) + k.q;
    dx.write(at.i, d.g);
  }
}

#define BATCHNORM(X, suffix)                                                                                         \
  KERNEL mean_sums##suffix(Operand x, i64 n, i64 c, i64 inner, Pair *sums) { meanSums(X(x), n, c, inner, sums); }    \
  KERNEL batch_norm##suffix(Operand x, Operand add, Operand y, i64 n, i64 c, i64 inner, const Channel<X::A> *table,  \
                            double most) {                                                                           \
    batchNorm(X(x), X(add), add.data != 0, X(y), n, c, inner, table, most);                                          \
  }                                                                                                                  \
  KERNEL batch_norm_sums##suffix(Operand x, Operand add, Operand dy, i64 n, i64 c, i64 inner,                        \
                                 const Channel<X::A> *table, double most, Pair *sums) {                              \
    backwardSums(X(x), X(add), add.data != 0, X(dy), n, c, inner, table, most, sums);                                \
  }                                                                                                                  \
  KERNEL batch_norm_backward##suffix(Operand x, Operand add, Operand dy, Operand dx, Operand dadd, i64 n, i64 c,     \
                                     i64 inner, const Channel<X::A> *table, double most) {                           \
    batchNormBackward(X(x), X(add), add.data != 0, X(dy), X(dx), X(dadd), dadd.data != 0, n, c, inner, table, most); \
  }
ACCESSES(BATCHNORM)
FOURS(BATCHNORM)

#define CHANNELS(A, suffix)                                                                                          \
  KERNEL mean_variance##suffix(Operand x, i64 n, i64 c, i64 inner, const Pair *sums, i64 parts, A *mean, A *variance) { \
    meanVariance(x, n, c, inner, sums, parts, mean, variance);                                                       \
  }                                                                                                                  \
  KERNEL batch_norm_table##suffix(i64 c, Operand mean, Operand variance, Operand weight, Operand bias, double eps,   \
                                  Channel<A> *table) {                                                               \
    channelTable(c, mean, variance, weight, bias, eps, table);                                                       \
  }                                                                                                                  \
  KERNEL batch_norm_channels##suffix(i64 m, i64 c, const Pair *sums, i64 parts, int own, Channel<A> *table,          \
                                     Operand dweight, Operand dbias) {                                               \
    backwardChannels(m, c, sums, parts, own, table, dweight, dbias);                                                 \
  }
CHANNELS(float, _f32)
CHANNELS(double, _f64)

KERNEL count(const i64 *x, i64 *y) {
  if (index() == 0) *y = *x + 1;
}
