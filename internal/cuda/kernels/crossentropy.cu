// Cross entropy and what goes with it: rows of n logits, each with a target's class.
// Sums over rows are left in parts, one of each block, which losstotal adds up.
#include "team.cuh"

namespace {

// NONE is the class of a row that does not count.
const i64 NONE = -0x7fffffffffffffffLL - 1;

struct Ignored { i64 count; double targets[7]; };

// leave adds up what the threads have and leaves it in parts.
__device__ inline void leave(double v, double *parts) {
  __shared__ double s[256];
  v = blockSum(v, s);
  if (threadIdx.x == 0) parts[blockIdx.x] = v;
}

// entropy is the loss of each row, and ln Σeˣ.
template <class T, class Team>
__device__ void entropy(const Team &team, i64 rows, i64 n, double smooth, const T *x, const i64 *classes, const double *weight, Acc<T> *lse, double *parts) {
  typedef Acc<T> A;
  double sum = 0;
  for (i64 row = team.first; row < rows; row += team.step) {
    const T *v = x + row * n;
    Exponents<A> e;
    for (i64 j = team.member; j < n; j += team.members) e.add(load(v + j));
    e.join(team);
    A l = e.top + log(e.sum), spread = 0;
    i64 k = classes[row];
    if (smooth != 0 && k != NONE) {
      for (i64 j = team.member; j < n; j += team.members) spread += (weight ? (A)weight[j] : 1) * (l - load(v + j));
      spread = team.sum(spread);
    }
    if (team.member != 0) continue;
    lse[row] = l;
    if (k == NONE) continue;
    double w = weight ? weight[k] : 1;
    if (w != 0) sum += (1 - smooth) * w * (double)(l - load(v + k));
    if (smooth != 0) sum += smooth / n * spread;
  }
  leave(sum, parts);
}

// right counts rows whose first greatest logit is at the target; a NaN is greater than all.
template <class T, class Team> __device__ void right(const Team &team, i64 rows, i64 n, const T *x, const i64 *classes, double *parts) {
  typedef Acc<T> A;
  double sum = 0;
  for (i64 row = team.first; row < rows; row += team.step) {
    const T *v = x + row * n;
    A top = -INFINITY;
    for (i64 j = team.member; j < n; j += team.members) {
      A e = load(v + j);
      if (e > top || e != e) top = e;
      if (top != top) break;
    }
    top = team.most(top);
    i64 first = n;
    for (i64 j = team.member; j < n && first == n; j += team.members) {
      A e = load(v + j);
      if (e == top || e != e) first = j;
    }
    first = -team.most(-first);
    if (team.member == 0 && first < n && first == classes[row]) sum++;
  }
  leave(sum, parts);
}

} // namespace

// classes are the targets, with NONE for those to ignore; of more than fit, other calls
// have marked some.
#define CLASSES(T, S)                                                                          \
  KERNEL crossentropyclasses##S(i64 rows, const T *target, Ignored out, int first, i64 *to) {  \
    for (i64 i = index(); i < rows; i += span()) {                                             \
      i64 t = load(target + i);                                                                \
      bool none = !first && to[i] == NONE;                                                     \
      for (int k = 0; k < 7; k++) none = none || (k < out.count && t == out.targets[k]);       \
      to[i] = none ? NONE : t;                                                                 \
    }                                                                                          \
  }
CLASSES(i64, _i64)
CLASSES(i32, _i32)
CLASSES(u8, _u8)

// crossentropycount adds up the weights of the rows that count, and writes 1 and the first
// target that is not one of n classes, or zeros.
KERNEL crossentropycount(i64 rows, i64 n, const i64 *classes, const double *weight, double *total, i64 *outside) {
  __shared__ double s[256];
  __shared__ i64 least[256];
  double sum = 0;
  i64 bad = rows;
  for (i64 i = threadIdx.x; i < rows; i += blockDim.x) {
    i64 k = classes[i];
    if (k == NONE) continue;
    if (k >= 0 && k < n) sum += weight ? weight[k] : 1;
    else if (i < bad) bad = i;
  }
  sum = blockSum(sum, s);
  bad = -blockMax(-bad, least);
  if (threadIdx.x != 0) return;
  *total = sum;
  outside[0] = bad < rows;
  outside[1] = bad < rows ? classes[bad] : 0;
}

// crossentropyweights adds up all classes' weights.
KERNEL crossentropyweights(i64 n, const double *weight, double *sum) {
  __shared__ double s[256];
  double v = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) v += weight[i];
  v = blockSum(v, s);
  if (threadIdx.x == 0) *sum = v;
}

// dx is p·((1−s)·w[t] + s/n·Σw) − s/n·w − (1−s)·w[t] at t, times dy; it may lie where x
// does. wide threads work on a row. sum is of all weights, null for 1 each.
#define ENTROPY(T, S)                                                                                                                      \
  TEAM_KERNELS(T, crossentropy, S, entropy,                                                                                                \
               (i64 rows, i64 n, double smooth, const T *x, const i64 *classes, const double *weight, Acc<T> *lse, double *parts),         \
               rows, n, smooth, x, classes, weight, lse, parts)                                                                            \
  TEAM_KERNELS(T, crossentropyright, S, right, (i64 rows, i64 n, const T *x, const i64 *classes, double *parts), rows, n, x, classes, parts) \
  KERNEL crossentropyback##S(i64 rows, i64 n, int wide, double smooth, int total, const T *x, const i64 *classes, const double *weight,    \
                             const double *sum, const double *kept, const Acc<T> *lse, const Acc<T> *dy, T *dx) {                          \
    int each = blockDim.x / wide;                                                                                                          \
    double d = *dy;                                                                                                                        \
    if (!total) d = *kept == 0 ? 0 : d / *kept;                                                                                            \
    double every = smooth / n * d;                                                                                                         \
    Acc<T> spread = every;                                                                                                                 \
    for (i64 row = (i64)blockIdx.x * each + threadIdx.x / wide; row < rows; row += (i64)gridDim.x * each) {                                \
      i64 k = classes[row], at = row * n;                                                                                                  \
      double w = k == NONE ? 0 : weight ? weight[k] : 1;                                                                                   \
      Acc<T> one = (1 - smooth) * w * d, all = (1 - smooth) * w * d + every * (sum ? *sum : (double)n), l = lse[row];                      \
      for (i64 j = threadIdx.x % wide; j < n; j += wide) {                                                                                 \
        Acc<T> v = 0;                                                                                                                      \
        if (k != NONE) v = exp(load(x + at + j) - l) * all - (weight ? spread * (Acc<T>)weight[j] : spread) - (j == k ? one : 0);          \
        store(dx + at + j, v);                                                                                                             \
      }                                                                                                                                    \
    }                                                                                                                                      \
  }                                                                                                                                        \
  KERNEL nll##S(i64 rows, i64 n, const T *x, const i64 *classes, double *parts) {                                                          \
    double sum = 0;                                                                                                                        \
    for (i64 i = index(); i < rows; i += span())                                                                                           \
      if (classes[i] != NONE) sum -= load(x + i * n + classes[i]);                                                                         \
    leave(sum, parts);                                                                                                                     \
  }                                                                                                                                        \
  KERNEL nllback##S(i64 rows, i64 n, int wide, int total, const Acc<T> *dy, const i64 *classes, const double *kept, T *dx) {               \
    int each = blockDim.x / wide;                                                                                                          \
    double d = -(double)*dy;                                                                                                               \
    if (!total) d = *kept == 0 ? 0 : d / *kept;                                                                                            \
    for (i64 row = (i64)blockIdx.x * each + threadIdx.x / wide; row < rows; row += (i64)gridDim.x * each)                                  \
      for (i64 j = threadIdx.x % wide; j < n; j += wide) store(dx + row * n + j, j == classes[row] ? (Acc<T>)d : 0);                       \
  }
FLOATS(ENTROPY)
