// Elements and rows that an index names. They are copied as units of 2 to 16 bytes.
#include "index.cuh"

struct __align__(16) u128 { i64 a, b; };
#define UNITS(M) M(short, 2) M(int, 4) M(i64, 8) M(u128, 16)

// select copies rows of units: of each n of x the k that index names. wide threads work on
// a row.
#define SELECT(U, SIZE)                                                                                                     \
  KERNEL select##SIZE(i64 rows, i64 k, i64 n, i64 units, int wide, const U *x, Index at, U *y) {                         \
    int each = blockDim.x / wide;                                                                                           \
    for (i64 row = (i64)blockIdx.x * each + threadIdx.x / wide; row < rows; row += (i64)gridDim.x * each) {                 \
      const U *from = x + (row / k * n + at[row % k]) * units;                                                           \
      for (i64 j = threadIdx.x % wide; j < units; j += wide) y[row * units + j] = from[j];                                  \
    }                                                                                                                       \
  }
UNITS(SELECT)

// gather takes for each element of index one of its lane, which has n elements in x and k
// in index, inner apart.
#define GATHER(U, SIZE)                                                                       \
  KERNEL gather##SIZE(i64 count, i64 k, i64 n, i64 inner, const U *x, Index at, U *y) {    \
    for (i64 i = index(); i < count; i += span())                                            \
      y[i] = x[(i / (k * inner) * n + at[i]) * inner + i % inner];                         \
  }
UNITS(GATHER)

// gatherback looks for each element of dx through the k uses in its lane.
#define GATHERBACK(T, S)                                                                               \
  KERNEL gatherback##S(i64 count, i64 k, i64 n, i64 inner, const T *dy, Index at, T *dx) {          \
    for (i64 i = index(); i < count; i += span()) {                                                   \
      i64 first = i / (n * inner) * k * inner + i % inner, j = i / inner % n;                             \
      Acc<T> sum = 0;                                                                                  \
      for (i64 e = first; e < first + k * inner; e += inner)                                                 \
        if (at[e] == j) sum += load(dy + e);                                                        \
      store(dx + i, sum);                                                                              \
    }                                                                                                  \
  }
FLOATS(GATHERBACK)

// indexoutside writes 1 and the first index that is not one of n, or zeros.
KERNEL indexoutside(i64 count, i64 n, Index at, i64 *outside) {
  __shared__ i64 least[1024];
  i64 bad = count;
  for (i64 i = threadIdx.x; i < count && bad == count; i += blockDim.x)
    if (at[i] < 0 || at[i] >= n) bad = i;
  bad = -blockMax(-bad, least);
  if (threadIdx.x != 0) return;
  outside[0] = bad < count;
  outside[1] = bad < count ? at[bad] : 0;
}
