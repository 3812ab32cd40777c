#include "rule.cuh"
#include "table.cuh"

// Stepped is a parameter: its gradient, weights and up to three states, n of each. dense
// says that all begin at multiples of 16 bytes.
struct Stepped {
  const void *g;
  void *w, *a, *b, *c;
  i64 n;
  int first, dense;
  u64 seed;
};
typedef Table<Stepped, 60> Steps;

// update steps weights with their gradients, times scale, and states. A state that is null
// is 0 for the step, and what becomes of it is lost. A block takes 4096 elements.
template <class T, class S, class F>
__device__ inline void update(const Steps &steps, u64 tick, Acc<T> scale, F step) {
  const Stepped p = steps.mine();
  const T *g = (const T *)p.g;
  T *w = (T *)p.w;
  S *a = (S *)p.a, *b = (S *)p.b, *c = (S *)p.c;
  const Key key = {p.seed, tick, 0};
  auto few = [=](auto few, i64 i) {
    const int N = decltype(few)::count;
    Acc<T> vg[N], vw[N], va[N] = {}, vb[N] = {}, vc[N] = {};
    loadFew(vg, g, i);
    loadFew(vw, w, i);
    if (a) loadFew(va, a, i);
    if (b) loadFew(vb, b, i);
    if (c) loadFew(vc, c, i);
    for (int k = 0; k < N; k++) step(vg[k] * scale, vw[k], va[k], vb[k], vc[k]);
    roundFew(key, 1, w, vw, i);
    if (a) roundFew(key, 2, a, va, i);
    if (b) roundFew(key, 3, b, vb, i);
    if (c) roundFew(key, 4, c, vc, i);
  };
  const i64 lo = 4096 * (i64)(blockIdx.x - p.first), hi = lo + 4096 < p.n ? lo + 4096 : p.n;
  const i64 byFour = p.dense ? hi / 4 * 4 : lo;
  for (i64 i = lo + 4 * threadIdx.x; i < byFour; i += 4 * blockDim.x) few(Few<4>(), i);
  for (i64 i = byFour + threadIdx.x; i < hi; i += blockDim.x) few(Few<1>(), i);
}

// RULE makes a rule's kernels, for weights w and gradients g of each float type and states
// a, b and c of the type that it is computed in. SMALL_RULE has others for states of
// bfloat16. f are the numbers.
#define RULE_OF(T, TS, S, SS, NAME, ...)                                                                     \
  KERNEL NAME##TS##SS(Steps steps, u64 tick, double scale, Numbers numbers) {                                \
    typedef Acc<T> A;                                                                                        \
    A f[8];                                                                                                  \
    numbers.to(f);                                                                                           \
    update<T, S>(steps, tick, (A)scale, [=](A g, A &w, A &a, A &b, A &c) { __VA_ARGS__ });                   \
  }
#define RULE(...)                                                                                            \
  RULE_OF(float, _f32, float, _f32, __VA_ARGS__) RULE_OF(double, _f64, double, _f64, __VA_ARGS__)            \
  RULE_OF(b16, _b16, float, _f32, __VA_ARGS__) RULE_OF(f16, _f16, float, _f32, __VA_ARGS__)
#define SMALL_RULE(...)                                                                                      \
  RULE_OF(float, _f32, b16, _b16, __VA_ARGS__) RULE_OF(double, _f64, b16, _b16, __VA_ARGS__)                 \
  RULE_OF(b16, _b16, b16, _b16, __VA_ARGS__) RULE_OF(f16, _f16, b16, _b16, __VA_ARGS__)

// rate, decay
RULE(sgd, w -= f[0] * (g + f[1] * w);)

RULE(sgd_momentum, momentumStep(f, g, w, a);)
SMALL_RULE(sgd_momentum, momentumStep(f, g, w, a);)

RULE(adam, adamStep(f, g, w, a, b, c);)
SMALL_RULE(adam, adamStep(f, g, w, a, b, c);)

// rate, decay, α, 1 − α, ε, momentum, whether it is centered
RULE(rmsprop,
  A d = g + f[1] * w;
  a = f[2] * a + f[3] * d * d;
  A q = a;
  if (f[6] != 0) {
    c += f[3] * (d - c);
    q -= c * c;
  }
  b = d / (sqrt(q) + f[4]) + f[5] * b;
  w -= f[0] * b;)

// rate, decay, ε
RULE(adagrad,
  A d = g + f[1] * w;
  a += d * d;
  w -= f[0] * d / (sqrt(a) + f[2]);)

// rate, decay, ρ, 1 − ρ, ε
RULE(adadelta,
  A d = g + f[1] * w;
  a = f[2] * a + f[3] * d * d;
  d *= sqrt(b + f[4]) / sqrt(a + f[4]);
  b = f[2] * b + f[3] * d * d;
  w -= f[0] * d;)

// rate on the gradient, decay, 1 − β1, β2, 1 − β2, ε, rate on the mean, 1/√(1 − β2ᵗ)
RULE(nadam,
  A d = g + f[1] * w;
  a += f[2] * (d - a);
  b = f[3] * b + f[4] * d * d;
  w -= (f[0] * d + f[6] * a) / (sqrt(b) * f[7] + f[5]);)

// rate/(1 − β1ᵗ), decay, 1 − β1, β2, ε
RULE(adamax,
  A d = g + f[1] * w;
  a += f[2] * (d - a);
  b = greater(f[3] * b, fabs(d) + f[4]);
  w -= f[0] * a / b;)
