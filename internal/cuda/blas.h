#pragma once
#include "calls.h"

// cuBLAS, of any major version from 11 on: what is called has not changed since.
typedef struct {
  void *library, *handle;
  char version[300];
  int (*destroy)(void *);
  int (*workspace)(void *, void *, size_t); // from 11.2 on
  int (*gemm)(void *, int opA, int opB, int m, int n, int k, const void *alpha, const void *a, int typeA, int lda,
              long long strideA, const void *b, int typeB, int ldb, long long strideB, const void *beta, void *c,
              int typeC, int ldc, long long strideC, int batch, int compute, int algorithm);
} snug_blas;

// snug_blas_open returns the name of the call that failed, or none. Its text is static.
static inline const char *snug_blas_open(CUcontext ctx, CUstream s, const char *path, snug_blas *b, int *status) {
  int (*create)(void **), (*stream)(void *, CUstream), (*mode)(void *, int);
  *status = 0;
  b->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!b->library) return "dlopen";
  *(void **)&create = dlsym(b->library, "cublasCreate_v2");
  *(void **)&stream = dlsym(b->library, "cublasSetStream_v2");
  *(void **)&mode = dlsym(b->library, "cublasSetMathMode");
  *(void **)&b->destroy = dlsym(b->library, "cublasDestroy_v2");
  *(void **)&b->workspace = dlsym(b->library, "cublasSetWorkspace_v2");
  *(void **)&b->gemm = dlsym(b->library, "cublasGemmStridedBatchedEx");
  snug_version((snug_property)dlsym(b->library, "cublasGetProperty"), b->version, sizeof b->version);
  if (!create || !stream || !mode || !b->destroy || !b->gemm) return "dlsym";
  if ((*status = enter(ctx))) return "cuCtxSetCurrent";
  if ((*status = create(&b->handle))) return "cublasCreate";
  if ((*status = stream(b->handle, s))) return "cublasSetStream";
  // No TF32, and 16-bit products are summed in float32 all the way.
  const int defaultMath = 0, noReducedSums = 16;
  if ((*status = mode(b->handle, defaultMath | noReducedSums))) return "cublasSetMathMode";
  return NULL;
}

// Row-major matrices are column-major ones transposed: out' = y'·x'.
static inline int snug_blas_gemm(CUcontext ctx, snug_blas *b, int type, int compute, int m, int n, int k, int batch,
                                 uintptr_t x, int ldx, int tx, long long sx, uintptr_t y, int ldy, int ty, long long sy,
                                 uintptr_t out, int ldout, long long sout, int add, uintptr_t work, size_t bytes, CUresult *err) {
  double one = 1, beta = add;
  float onef = 1, betaf = add;
  const int wide = 70; // CUBLAS_COMPUTE_64F
  if ((*err = enter(ctx))) return 0;
  if (b->workspace) {
    int status = b->workspace(b->handle, (void *)work, bytes);
    if (status) return status;
  }
  return b->gemm(b->handle, ty, tx, n, m, k, compute == wide ? (void *)&one : (void *)&onef, (void *)y, type, ldy, sy,
                 (void *)x, type, ldx, sx, compute == wide ? (void *)&beta : (void *)&betaf, (void *)out, type, ldout,
                 sout, batch, compute, -1);
}

static inline void snug_blas_close(CUcontext ctx, snug_blas *b) {
  if (enter(ctx) == CUDA_SUCCESS) b->destroy(b->handle);
}
