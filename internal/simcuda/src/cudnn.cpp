// A stand-in for cuDNN: its convolutions as plain loops, on the simulated device. All
// algorithms compute the same, but want different workspaces, and write over them.
#include "enqueue.h"
#include "half.h"
#include <cstddef>
#include <cstdio>
#include <memory>
#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int

enum { Success = 0, BadParameter = 2000, NotSupported = 3000, ExecutionFailed = 5000 };
enum { Float = 0, Double = 1, Half = 2, Bfloat = 9 };

struct Handle { void *stream = nullptr; };
struct Tensor { int type = -1, d[4] = {}; };
struct Convolution { int pad = 0, stride = 1, dilation = 1, compute = -1, groups = 1, math = -1; };

API cudnnGetProperty(int which, int *v) {
  const int version[] = {9, 1, 0};
  return *v = version[which], Success;
}
API cudnnCreate(Handle **h) { return *h = new Handle, Success; }
API cudnnDestroy(Handle *h) { return delete h, Success; }
API cudnnSetStream(Handle *h, void *stream) { return h->stream = stream, Success; }
API cudnnCreateTensorDescriptor(Tensor **t) { return *t = new Tensor, Success; }
API cudnnCreateFilterDescriptor(Tensor **t) { return *t = new Tensor, Success; }
API cudnnCreateConvolutionDescriptor(Convolution **c) { return *c = new Convolution, Success; }

static int set(Tensor *t, int format, int type, int a, int b, int c, int d) {
  if (format != 0 || a < 1 || b < 1 || c < 1 || d < 1) return BadParameter;
  *t = {type, {a, b, c, d}};
  return Success;
}
API cudnnSetTensor4dDescriptor(Tensor *t, int format, int type, int n, int c, int h, int w) { return set(t, format, type, n, c, h, w); }
API cudnnSetFilter4dDescriptor(Tensor *t, int type, int format, int k, int c, int h, int w) { return set(t, format, type, k, c, h, w); }
API cudnnSetConvolution2dDescriptor(Convolution *c, int padH, int padW, int strideH, int strideW, int dilationH, int dilationW, int mode, int compute) {
  if (mode != 1) return NotSupported;
  if (padH != padW || strideH != strideW || dilationH != dilationW || padH < 0 || strideH < 1 || dilationH < 1) return BadParameter;
  *c = {padH, strideH, dilationH, compute, 1, -1};
  return Success;
}
API cudnnSetConvolutionGroupCount(Convolution *c, int groups) { return c->groups = groups, Success; }
API cudnnSetConvolutionMathType(Convolution *c, int math) { return c->math = math, Success; }

static int fits(const Tensor *x, const Tensor *w, const Convolution *c, const Tensor *y) {
  auto out = [&](int i) { return (x->d[i] + 2 * c->pad - c->dilation * (w->d[i] - 1) - 1) / c->stride + 1; };
  if (x->type != w->type || x->type != y->type || (x->type == Double) != (c->compute == Double) || c->math < 0) return NotSupported;
  bool ok = c->groups > 0 && x->d[1] == w->d[1] * c->groups && y->d[1] == w->d[0] && w->d[0] % c->groups == 0 &&
            y->d[0] == x->d[0] && y->d[2] == out(2) && y->d[3] == out(3);
  if (!ok) fprintf(stderr, "simcuda: a convolution's shapes do not fit\n");
  return ok ? Success : BadParameter;
}

// wanted is the workspace of an algorithm: a table of indices, or some of the weights.
static size_t wanted(const Tensor *w, int pass, int algorithm) {
  size_t table = 4 * w->d[1] * w->d[2] * w->d[3];
  return algorithm == 0 ? 0 : pass == 0 ? table : 2 * table;
}

struct Job {
  int pass;
  Tensor xd, wd, yd;
  Convolution c;
  void *x, *w, *y, *work;
  size_t bytes;
  double alpha, beta;
};

template <class A, class T> static void convolve(const Job &j) {
  const T *x = (const T *)j.x, *w = (const T *)j.w, *y = (const T *)j.y;
  const int *X = j.xd.d, *W = j.wd.d, *Y = j.yd.d;
  auto size = [](const int *d) { return (size_t)d[0] * d[1] * d[2] * d[3]; };
  std::vector<A> sum(size(j.pass == 0 ? Y : j.pass == 1 ? X : W));
  int in = W[1], each = W[0] / j.c.groups;
  for (int n = 0; n < Y[0]; n++)
    for (int o = 0; o < W[0]; o++)
      for (int i = 0; i < in; i++)
        for (int p = 0; p < Y[2]; p++)
          for (int a = 0; a < W[2]; a++) {
            int row = p * j.c.stride - j.c.pad + a * j.c.dilation;
            if (row < 0 || row >= X[2]) continue;
            size_t xr = (((size_t)n * X[1] + o / each * in + i) * X[2] + row) * X[3], yr = (((size_t)n * Y[1] + o) * Y[2] + p) * Y[3];
            size_t wr = (((size_t)o * in + i) * W[2] + a) * W[3];
            for (int b = 0; b < W[3]; b++) {
              int at = b * j.c.dilation - j.c.pad, q = 0, end = Y[3]; // columns that lie in the image
              while (q < end && q * j.c.stride + at < 0) q++;
              while (end > q && (end - 1) * j.c.stride + at >= X[3]) end--;
              A dot = 0;
              for (; q < end; q++) {
                int col = q * j.c.stride + at;
                if (j.pass == 0) sum[yr + q] += (A)x[xr + col] * (A)w[wr + b];
                if (j.pass == 1) sum[xr + col] += (A)y[yr + q] * (A)w[wr + b];
                if (j.pass == 2) dot += (A)x[xr + col] * (A)y[yr + q];
              }
              if (j.pass == 2) sum[wr + b] += dot;
            }
          }
  T *to = (T *)(j.pass == 0 ? j.y : j.pass == 1 ? j.x : j.w);
  for (size_t i = 0; i < sum.size(); i++)
    to[i] = (T)((A)j.alpha * sum[i] + (j.beta != 0 ? (A)j.beta * (A)to[i] : 0)); // what beta = 0 meets is not read
}

static void run(void *arg) {
  std::unique_ptr<Job> j((Job *)arg);
  if (j->bytes) memset(j->work, 0xff, j->bytes);
  switch (j->xd.type) {
  case Float: return convolve<float, float>(*j);
  case Double: return convolve<double, double>(*j);
  case Half: return convolve<float, Float16>(*j);
  case Bfloat: return convolve<float, Bfloat16>(*j);
  }
}

static int start(Handle *h, int pass, const void *alpha, const void *beta, const Tensor *xd, const void *x, const Tensor *wd, const void *w,
                 const Tensor *yd, const void *y, const Convolution *c, int algorithm, void *work, size_t bytes) {
  if (int r = fits(xd, wd, c, yd)) return r;
  size_t need = wanted(wd, pass, algorithm);
  if (algorithm < 0 || algorithm > 1 || need > bytes) return BadParameter;
  bool wide = c->compute == Double;
  auto scale = [&](const void *p) { return wide ? *(const double *)p : *(const float *)p; };
  auto j = std::make_unique<Job>(Job{pass, *xd, *wd, *yd, *c, (void *)x, (void *)w, (void *)y, work, need, scale(alpha), scale(beta)});
  return simcuda_enqueue(h->stream, "cuDNN's convolution", run, j.release()) ? ExecutionFailed : Success;
}

API cudnnGetConvolutionForwardWorkspaceSize(Handle *, Tensor *x, Tensor *w, Convolution *c, Tensor *y, int algorithm, size_t *bytes) {
  return *bytes = wanted(w, 0, algorithm), fits(x, w, c, y);
}
API cudnnGetConvolutionBackwardDataWorkspaceSize(Handle *, Tensor *w, Tensor *y, Convolution *c, Tensor *x, int algorithm, size_t *bytes) {
  return *bytes = wanted(w, 1, algorithm), fits(x, w, c, y);
}
API cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle *, Tensor *x, Tensor *y, Convolution *c, Tensor *w, int algorithm, size_t *bytes) {
  return *bytes = wanted(w, 2, algorithm), fits(x, w, c, y);
}
API cudnnConvolutionForward(Handle *h, const void *alpha, Tensor *xd, const void *x, Tensor *wd, const void *w, Convolution *c, int algorithm,
                            void *work, size_t bytes, const void *beta, Tensor *yd, void *y) {
  return start(h, 0, alpha, beta, xd, x, wd, w, yd, y, c, algorithm, work, bytes);
}
API cudnnConvolutionBackwardData(Handle *h, const void *alpha, Tensor *wd, const void *w, Tensor *yd, const void *y, Convolution *c, int algorithm,
                                 void *work, size_t bytes, const void *beta, Tensor *xd, void *x) {
  return start(h, 1, alpha, beta, xd, x, wd, w, yd, y, c, algorithm, work, bytes);
}
API cudnnConvolutionBackwardFilter(Handle *h, const void *alpha, Tensor *xd, const void *x, Tensor *yd, const void *y, Convolution *c, int algorithm,
                                   void *work, size_t bytes, const void *beta, Tensor *wd, void *w) {
  return start(h, 2, alpha, beta, xd, x, wd, w, yd, y, c, algorithm, work, bytes);
}
