// Losses over pairs of elements of any float types, added up in float64 and in a fixed
// order: each block leaves its sum in parts, and one block adds those up. There x and y are
// of a type A, as in the gradients.
#include "common.cuh"

namespace {

struct MSE {
  template <class A> static __device__ double loss(double, A x, A y) {
    double d = (double)x - (double)y;
    return d * d;
  }
  template <class A> static __device__ A grad(double, int second, A d, A x, A y) { return (second ? -2 * d : 2 * d) * (x - y); }
};

struct L1 {
  template <class A> static __device__ double loss(double, A x, A y) { return fabs((double)x - (double)y); }
  template <class A> static __device__ A grad(double, int second, A d, A x, A y) {
    A diff = x - y;
    if (second) d = -d;
    return diff > 0 ? d : diff < 0 ? -d : d * diff; // 0, or NaN
  }
};

struct SmoothL1 {
  template <class A> static __device__ double loss(double beta, A x, A y) {
    double d = fabs((double)x - (double)y);
    return d < beta ? 0.5 / beta * d * d : d - 0.5 * beta;
  }
  template <class A> static __device__ A grad(double beta, int second, A d, A x, A y) {
    A diff = x - y, b = beta;
    if (second) d = -d;
    return diff >= b ? d : diff <= -b ? -d : d / b * diff;
  }
};

struct BCE {
  template <class A> static __device__ double loss(double, A x, A y) {
    A most = x > 0 || x != x ? x : 0;
    return most - x * y + log1p(exp(-fabs(x)));
  }
  template <class A> static __device__ A grad(double, int second, A d, A x, A y) { return second ? -d * x : d * (1 / (1 + exp(-x)) - y); }
};

// KL is 0 for a y of 0.
struct KL {
  template <class A> static __device__ double loss(double, A x, A y) {
    return y != 0 ? y * (log(y) - x) : 0;
  }
  template <class A> static __device__ A grad(double, int second, A d, A x, A y) { return second ? d * (log(y) + 1 - x) : -d * y; }
};

template <class L, class A> __device__ void loss(i64 n, double f, const Operand &x, const Operand &y, double *parts) {
  __shared__ double s[256];
  double sum = 0;
  for (i64 i = index(); i < n; i += span()) sum += L::loss(f, x.get<A>(i), y.get<A>(i));
  sum = blockSum(sum, s);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

template <class L, class A> __device__ void grad(i64 n, double f, int second, double by, const Operand &x, const Operand &y, const A *dy, const Operand &out) {
  A d = (double)*dy * by;
  for (i64 i = index(); i < n; i += span()) out.put<A>(i, L::grad(f, second, d, x.get<A>(i), y.get<A>(i)));
}

} // namespace

#define LOSS(L, NAME, A, S)                                                                                             \
  KERNEL NAME##S(i64 n, double f, Operand x, Operand y, double *parts) { loss<L, A>(n, f, x, y, parts); }               \
  KERNEL NAME##back##S(i64 n, double f, int second, double by, Operand x, Operand y, const A *dy, Operand out) {        \
    grad<L, A>(n, f, second, by, x, y, dy, out);                                                                        \
  }
#define LOSSES(A, S) LOSS(MSE, mse, A, S) LOSS(L1, l1, A, S) LOSS(SmoothL1, smoothl1, A, S) LOSS(BCE, bce, A, S) LOSS(KL, kl, A, S)
LOSSES(float, _f32)
LOSSES(double, _f64)

// losstotal is the sum of count parts times by, divided by what kept says, if it says
// something. Of nothing that counts the mean is 0.
#define TOTAL(A, S)                                                                             \
  KERNEL losstotal##S(i64 count, const double *parts, double by, const double *kept, A *out) {  \
    __shared__ double s[256];                                                                   \
    double sum = 0;                                                                             \
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];                      \
    sum = blockSum(sum, s) * by;                                                                \
    if (kept) sum /= *kept == 0 ? INFINITY : *kept;                                             \
    if (threadIdx.x == 0) *out = sum;                                                           \
  }
TOTAL(float, _f32)
TOTAL(double, _f64)
