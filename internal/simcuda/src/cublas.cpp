// A stand-in for cuBLAS: its products as plain loops, on the simulated device. It is as
// strict about leading dimensions as the real one, and writes over its workspace.
#include "enqueue.h"
#include "half.h"
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int

enum { Success = 0, NotInitialized = 1, InvalidValue = 7, ExecutionFailed = 13, NotSupported = 15 };
enum { R32F = 0, R64F = 1, R16F = 2, R16BF = 14 };
enum { Compute32F = 68, Compute64F = 70, Compute32FTF32 = 77 };

struct Handle {
  void *stream = nullptr, *work = nullptr;
  size_t bytes = 0;
  int mode = 0;
};

API cublasCreate_v2(Handle **h) {
  *h = new Handle;
  return Success;
}
API cublasDestroy_v2(Handle *h) {
  delete h;
  return Success;
}
API cublasGetProperty(int which, int *v) {
  const int version[] = {12, 4, 0};
  return *v = version[which], 0;
}
API cublasGetVersion_v2(Handle *, int *v) {
  *v = 120000;
  return Success;
}
API cublasSetStream_v2(Handle *h, void *stream) {
  h->stream = stream, h->work = nullptr, h->bytes = 0; // the workspace is forgotten, as by the real one
  return Success;
}
API cublasSetMathMode(Handle *h, int mode) {
  h->mode = mode;
  return Success;
}
API cublasSetWorkspace_v2(Handle *h, void *work, size_t bytes) {
  if ((size_t)work % 256) return InvalidValue;
  h->work = work, h->bytes = bytes;
  return Success;
}

struct Matrix {
  const void *at;
  int type, ld, transposed;
  long long stride;
};
struct Product {
  int m, n, k, batch, compute;
  double alpha, beta;
  Matrix a, b, c;
  void *work;
  size_t bytes;
};

// TF32 has 10 bits of fraction.
static float tf32(float f) { return bitsOf((bitsOf(f) + 0xfff + (bitsOf(f) >> 13 & 1)) & ~0x1fffu); }

// vectors copies op(m), of rows × cols, as rows or as columns that lie one after the other.
template <class A, class T> static std::vector<A> vectors(const Matrix &m, int batch, int count, int length, bool rows, bool round) {
  const T *p = (const T *)m.at + batch * m.stride;
  std::vector<A> v((size_t)count * length);
  bool down = rows != (m.transposed != 0); // the vectors go across memory's columns
  for (int i = 0; i < count; i++)
    for (int j = 0; j < length; j++) {
      A x = (A)p[down ? i + (size_t)j * m.ld : (size_t)i * m.ld + j];
      v[(size_t)i * length + j] = round ? (A)tf32((float)x) : x;
    }
  return v;
}

template <class A, class T> static void multiply(const Product &p) {
  bool round = p.compute == Compute32FTF32;
  for (int i = 0; i < p.batch; i++) {
    auto a = vectors<A, T>(p.a, i, p.m, p.k, true, round), b = vectors<A, T>(p.b, i, p.n, p.k, false, round);
    T *c = (T *)p.c.at + i * p.c.stride;
    for (int col = 0; col < p.n; col++)
      for (int row = 0; row < p.m; row++) {
        const A *x = &a[(size_t)row * p.k], *y = &b[(size_t)col * p.k];
        const int lanes = 16;
        A part[lanes] = {}, sum = 0;
        int j = 0;
        for (; j + lanes <= p.k; j += lanes)
          for (int l = 0; l < lanes; l++) part[l] += x[j + l] * y[j + l];
        for (; j < p.k; j++) sum += x[j] * y[j];
        for (A s : part) sum += s;
        T &to = c[row + (size_t)col * p.c.ld];
        to = (T)((A)p.alpha * sum + (p.beta != 0 ? (A)p.beta * (A)to : 0)); // what beta = 0 meets is not read
      }
  }
}

static void run(void *arg) {
  std::unique_ptr<Product> p((Product *)arg);
  if (p->bytes) memset(p->work, 0xff, p->bytes);
  switch (p->c.type) {
  case R32F: return multiply<float, float>(*p);
  case R64F: return multiply<double, double>(*p);
  case R16F: return multiply<float, Float16>(*p);
  case R16BF: return multiply<float, Bfloat16>(*p);
  }
}

static bool fits(const Matrix &m, int rows, int cols) {
  return (m.transposed == 0 || m.transposed == 1) && m.ld >= (m.transposed ? cols : rows) && m.ld >= 1;
}

API cublasGemmStridedBatchedEx(Handle *h, int opA, int opB, int m, int n, int k, const void *alpha, const void *a, int typeA, int lda,
                               long long strideA, const void *b, int typeB, int ldb, long long strideB, const void *beta, void *c,
                               int typeC, int ldc, long long strideC, int batch, int compute, int algorithm) {
  if (!h) return NotInitialized;
  auto p = std::make_unique<Product>();
  *p = {m, n, k, batch, compute, 0, 0, {a, typeA, lda, opA, strideA}, {b, typeB, ldb, opB, strideB}, {c, typeC, ldc, 0, strideC}, h->work, h->bytes};
  if (m < 0 || n < 0 || k < 0 || batch < 0 || algorithm != -1 || !fits(p->a, m, k) || !fits(p->b, k, n) || !fits(p->c, m, n)) {
    fprintf(stderr, "simcuda: cublasGemmStridedBatchedEx: %d×%d×%d, batch %d, operations %d %d, leading dimensions %d %d %d\n", m, n, k, batch, opA, opB, lda, ldb, ldc);
    return InvalidValue;
  }
  bool wide = compute == Compute64F;
  if (typeA != typeC || typeB != typeC || wide != (typeC == R64F) || (!wide && compute != Compute32F && compute != Compute32FTF32) ||
      (compute == Compute32FTF32 && typeC != R32F) || (typeC != R32F && typeC != R64F && typeC != R16F && typeC != R16BF))
    return NotSupported;
  p->alpha = wide ? *(const double *)alpha : *(const float *)alpha;
  p->beta = wide ? *(const double *)beta : *(const float *)beta;
  if (m == 0 || n == 0 || batch == 0) return Success;
  return simcuda_enqueue(h->stream, "cublasGemmStridedBatchedEx", run, p.release()) ? ExecutionFailed : Success;
}
