#include "reduce.cuh"
#include "rounding.cuh"

// The host's adafactor.go has the formulas.

// adafactor_rate makes what a change u is multiplied by, of the sums of w² and u² over n
// elements: parts of the one and then of the other. It takes the first one's place.
KERNEL adafactor_rate(i64 n, i64 parts, double rate, double least, double clip, int relative, double *sums) {
  double size = 0, change = 0;
  for (i64 k = 0; k < parts; k++) change += sums[parts + k];
  rate /= greater(1.0, sqrt(change / n) / clip);
  if (relative) {
    for (i64 k = 0; k < parts; k++) size += sums[k];
    rate *= greater(least, sqrt(size / n));
  }
  sums[0] = rate;
}

// moved is a mean, or a square, that is moved to what is now.
template <class A> __device__ inline A moved(A mean, double beta2, double now) { return A(beta2 * mean + (1 - beta2) * now); }

#define MEANS(A, S)                                                                                          \
  /* The means of rows and columns, of the sums of their g². */                                              \
  KERNEL adafactor_means##S(i64 rows, i64 cols, double beta2, double eps, const double *rowSums,             \
                            const double *colSums, A *row, A *col) {                                         \
    for (i64 i = index(); i < rows; i += span()) row[i] = moved(row[i], beta2, rowSums[i] / cols + eps);     \
    for (i64 j = index(); j < cols; j += span()) col[j] = moved(col[j], beta2, colSums[j] / rows + eps);     \
  }                                                                                                          \
  /* Parts of 1/√v: u is g times both. */                                                                    \
  KERNEL adafactor_parts##S(i64 rows, i64 cols, const double *mean, const A *row, const A *col,              \
                            double *rowParts, double *colParts) {                                            \
    for (i64 i = index(); i < rows; i += span()) rowParts[i] = sqrt(*mean / row[i]);                         \
    for (i64 j = index(); j < cols; j += span()) colParts[j] = 1 / sqrt((double)col[j]);                     \
  }
MEANS(float, _f32)
MEANS(double, _f64)

#define MATRIX(T, S)                                                                                         \
  /* The sum of u² of each row; it may take the place of that row's part. */                                 \
  KERNEL adafactor_change##S(Reduction d, Operand out, double scale, const T *g, const double *rowParts,     \
                             const double *colParts) {                                                       \
    reduce(d, out, scale, [=](i64 r) {                                                                       \
      const T *from = g + r * d.m;                                                                           \
      double part = rowParts[r];                                                                             \
      return [=](i64 j) { double u = load(from + j) * colParts[j] * part; return u * u; };                   \
    });                                                                                                      \
  }                                                                                                          \
  KERNEL adafactor##S(i64 n, int dense, Key key, i64 cols, double keep, const double *rate,                  \
                      const double *rowParts, const double *colParts, const T *g, T *w) {                    \
    typedef Acc<T> A;                                                                                        \
    double by = *rate;                                                                                       \
    byFour(n, dense, [=](auto few, i64 i) {                                                                  \
      const int N = decltype(few)::count;                                                                    \
      A vg[N], vw[N];                                                                                        \
      loadFew(vg, g, i);                                                                                     \
      loadFew(vw, w, i);                                                                                     \
      i64 r = i / cols, c = i - r * cols;                                                                    \
      for (int k = 0; k < N; k++) {                                                                          \
        vw[k] = A(keep) * vw[k] - A(by * rowParts[r] * colParts[c] * vg[k]);                                 \
        if (++c == cols) c = 0, r++;                                                                         \
      }                                                                                                      \
      roundFew(key, 1, w, vw, i);                                                                            \
    });                                                                                                      \
  }
FLOATS(MATRIX)

#define VECTOR(T, S)                                                                                         \
  KERNEL adafactor_squares##S(i64 n, double beta2, double eps, const T *g, Acc<T> *v) {                      \
    for (i64 i = index(); i < n; i += span()) {                                                              \
      double x = load(g + i);                                                                                \
      v[i] = moved(v[i], beta2, x * x + eps);                                                                \
    }                                                                                                        \
  }                                                                                                          \
  KERNEL adafactor_vector_change##S(Reduction d, Operand out, double scale, const T *g, const Acc<T> *v) {   \
    reduce(d, out, scale, [=](i64) {                                                                         \
      return [=](i64 j) { double x = load(g + j); return x * x / v[j]; };                                    \
    });                                                                                                      \
  }                                                                                                          \
  KERNEL adafactor_vector##S(i64 n, int dense, Key key, double keep, const double *rate,                     \
                             const T *g, T *w, const Acc<T> *v) {                                            \
    typedef Acc<T> A;                                                                                        \
    double by = *rate;                                                                                       \
    byFour(n, dense, [=](auto few, i64 i) {                                                                  \
      const int N = decltype(few)::count;                                                                    \
      A vg[N], vw[N], vv[N];                                                                                 \
      loadFew(vg, g, i);                                                                                     \
      loadFew(vw, w, i);                                                                                     \
      loadFew(vv, v, i);                                                                                     \
      for (int k = 0; k < N; k++) vw[k] = A(keep) * vw[k] - A(by * vg[k] / sqrt((double)vv[k]));             \
      roundFew(key, 1, w, vw, i);                                                                            \
    });                                                                                                      \
  }
FLOATS(VECTOR)
