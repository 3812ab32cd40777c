#pragma once
#include "calls.h"

// cuDNN's convolutions, of any major version from 8 on: what is called has not changed
// since. D makes its functions' types.
#define DNN(D)                                                                                                     \
  D(Create, (void **))                                                                                             \
  D(Destroy, (void *))                                                                                             \
  D(SetStream, (void *, CUstream))                                                                                 \
  D(CreateTensorDescriptor, (void **))                                                                             \
  D(CreateFilterDescriptor, (void **))                                                                             \
  D(CreateConvolutionDescriptor, (void **))                                                                        \
  D(SetTensor4dDescriptor, (void *, int format, int type, int n, int c, int h, int w))                             \
  D(SetFilter4dDescriptor, (void *, int type, int format, int k, int c, int h, int w))                             \
  D(SetConvolution2dDescriptor,                                                                                    \
    (void *, int padH, int padW, int strideH, int strideW, int dilationH, int dilationW, int mode, int compute))   \
  D(SetConvolutionGroupCount, (void *, int))                                                                       \
  D(SetConvolutionMathType, (void *, int))                                                                         \
  D(GetConvolutionForwardWorkspaceSize, (void *, void *x, void *w, void *conv, void *y, int algorithm, size_t *))  \
  D(GetConvolutionBackwardDataWorkspaceSize, (void *, void *w, void *dy, void *conv, void *dx, int, size_t *))     \
  D(GetConvolutionBackwardFilterWorkspaceSize, (void *, void *x, void *dy, void *conv, void *dw, int, size_t *))   \
  D(ConvolutionForward, (void *, const void *alpha, void *xd, const void *x, void *wd, const void *w, void *conv,  \
                         int algorithm, void *work, size_t bytes, const void *beta, void *yd, void *y))            \
  D(ConvolutionBackwardData, (void *, const void *alpha, void *wd, const void *w, void *dyd, const void *dy, void *conv, \
                              int algorithm, void *work, size_t bytes, const void *beta, void *dxd, void *dx))     \
  D(ConvolutionBackwardFilter, (void *, const void *alpha, void *xd, const void *x, void *dyd, const void *dy, void *conv, \
                                int algorithm, void *work, size_t bytes, const void *beta, void *dwd, void *dw))

typedef struct {
  void *handle, *x, *w, *y, *conv; // descriptors
  char version[300];
#define FIELD(name, args) int(*name) args;
  DNN(FIELD)
#undef FIELD
} snug_dnn;

// snug_dnn_open returns the name of the call that failed, or none. Its text is static.
static inline const char *snug_dnn_open(CUcontext ctx, CUstream s, const char *path, snug_dnn *d, int *status) {
  *status = 0;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return "dlopen";
#define FIND(name, args) \
  if (!(*(void **)&d->name = dlsym(library, "cudnn" #name))) return "dlsym of cudnn" #name;
  DNN(FIND)
#undef FIND
  snug_version((snug_property)dlsym(library, "cudnnGetProperty"), d->version, sizeof d->version);
  if ((*status = enter(ctx))) return "cuCtxSetCurrent";
  if ((*status = d->Create(&d->handle))) return "cudnnCreate";
  if ((*status = d->SetStream(d->handle, s))) return "cudnnSetStream";
  if ((*status = d->CreateTensorDescriptor(&d->x)) || (*status = d->CreateTensorDescriptor(&d->y))) return "cudnnCreateTensorDescriptor";
  if ((*status = d->CreateFilterDescriptor(&d->w))) return "cudnnCreateFilterDescriptor";
  if ((*status = d->CreateConvolutionDescriptor(&d->conv))) return "cudnnCreateConvolutionDescriptor";
  return NULL;
}

typedef struct {
  int type, compute, math;
  int n, c, h, w, o, kh, kw, oh, ow, stride, pad, dilation, groups;
} snug_conv;

enum { SNUG_FORWARD, SNUG_DATA, SNUG_WEIGHTS };

// snug_dnn_run returns cuDNN's answer, and -1 where the workspace is too small for each
// algorithm that gives the same bits every time.
static inline int snug_dnn_run(CUcontext ctx, snug_dnn *d, const snug_conv *c, int pass, uintptr_t x, uintptr_t w, uintptr_t y,
                               int add, uintptr_t work, size_t bytes, CUresult *err) {
  const int nchw = 0, correlation = 1, wide = 1;
  const double one = 1, beta = add;
  const float onef = 1, betaf = add;
  const void *a = c->compute == wide ? (void *)&one : (void *)&onef, *b = c->compute == wide ? (void *)&beta : (void *)&betaf;
  void *px = (void *)x, *pw = (void *)w, *py = (void *)y, *room = (void *)work;
  int status;
  size_t need;
  if ((*err = enter(ctx))) return 0;
  if ((status = d->SetTensor4dDescriptor(d->x, nchw, c->type, c->n, c->c, c->h, c->w))) return status;
  if ((status = d->SetTensor4dDescriptor(d->y, nchw, c->type, c->n, c->o, c->oh, c->ow))) return status;
  if ((status = d->SetFilter4dDescriptor(d->w, c->type, nchw, c->o, c->c / c->groups, c->kh, c->kw))) return status;
  if ((status = d->SetConvolution2dDescriptor(d->conv, c->pad, c->pad, c->stride, c->stride, c->dilation, c->dilation, correlation, c->compute)))
    return status;
  if ((status = d->SetConvolutionGroupCount(d->conv, c->groups))) return status;
  if ((status = d->SetConvolutionMathType(d->conv, c->math))) return status;
  switch (pass) {
  case SNUG_FORWARD:
    for (int algorithm = 1; algorithm >= 0; algorithm--) { // IMPLICIT_PRECOMP_GEMM, IMPLICIT_GEMM
      if (d->GetConvolutionForwardWorkspaceSize(d->handle, d->x, d->w, d->conv, d->y, algorithm, &need) || need > bytes) continue;
      return d->ConvolutionForward(d->handle, a, d->x, px, d->w, pw, d->conv, algorithm, room, bytes, b, d->y, py);
    }
    return -1;
  case SNUG_DATA: // algorithm 0 adds in any order
    if (d->GetConvolutionBackwardDataWorkspaceSize(d->handle, d->w, d->y, d->conv, d->x, 1, &need) || need > bytes) return -1;
    return d->ConvolutionBackwardData(d->handle, a, d->w, pw, d->y, py, d->conv, 1, room, bytes, b, d->x, px);
  default: // likewise
    if (d->GetConvolutionBackwardFilterWorkspaceSize(d->handle, d->x, d->y, d->conv, d->w, 1, &need) || need > bytes) return -1;
    return d->ConvolutionBackwardFilter(d->handle, a, d->x, px, d->y, py, d->conv, 1, room, bytes, b, d->w, pw);
  }
}

static inline void snug_dnn_close(CUcontext ctx, snug_dnn *d) {
  if (enter(ctx) == CUDA_SUCCESS) d->Destroy(d->handle);
}
