// Convolutions without cuDNN. Those with enough channels are products of matrices that are
// never in memory: tiles of what the windows read are gathered into shared memory as they
// are needed. Those with few channels a group, depthwise ones among them, are done by a
// thread for each result. Either way the sum of a result has one order.
#include "common.cuh"

// Conv is from images [n c h w] and weights [o c/groups kh kw] to results [n o oh ow]. Go's
// convolution makes it.
struct Conv {
  i64 n, c, h, w, o, kh, kw, oh, ow, stride, pad, dilation, groups;
  __device__ i64 window() const { return kh * kw; }
};

__device__ inline float muladd(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double muladd(double a, double b, double c) { return fma(a, b, c); }

// A block of 256 threads computes a tile of 64 or 128 rows, M at a time for each thread in
// runs of 4, and of 128 columns, 8 for each thread, by steps of 8 products.
enum { cols = 128, depth = 8, runs = 4, margin = 4 };

template <class A> struct alignas(16) Run { A v[runs]; };

template <class A> __device__ inline void muladd(A x, const Run<A> &y, Run<A> &sum) {
  sum.v[0] = muladd(x, y.v[0], sum.v[0]);
  sum.v[1] = muladd(x, y.v[1], sum.v[1]);
  sum.v[2] = muladd(x, y.v[2], sum.v[2]);
  sum.v[3] = muladd(x, y.v[3], sum.v[3]);
}

template <class A, int M> struct Tile {
  enum { rows = 16 * M };
  struct alignas(16) Shared { // two steps: one is computed while the next one comes
    A a[2][depth][rows + margin], b[2][depth][cols + margin];
  };
  Shared &s;
  Run<A> sums[M][2];

  __device__ Tile(Shared &s) : s(s) {
#pragma unroll
    for (int i = 0; i < 8 * M; i++) sums[i / 8][i / 4 % 2].v[i % 4] = 0;
  }
  __device__ A sum(int i, int j) const { return sums[i][j / 4].v[j % 4]; }
  __device__ A *a(int step, int k) { return s.a[step % 2][k]; }
  __device__ A *b(int step, int k) { return s.b[step % 2][k]; }
  // row and col are where this thread's sums lie in the tile.
  static __device__ int row(int i) { return i / 4 * 64 + threadIdx.x / 16 * 4 + i % 4; }
  static __device__ int col(int j) { return j / 4 * 64 + threadIdx.x % 16 * 4 + j % 4; }

  __device__ void multiply(int step) {
#pragma unroll 2
    for (int k = 0; k < depth; k++) {
      Run<A> x[M / 4], y[2];
#pragma unroll
      for (int i = 0; i < M / 4; i++) x[i] = *(const Run<A> *)(a(step, k) + row(4 * i));
#pragma unroll
      for (int j = 0; j < 2; j++) y[j] = *(const Run<A> *)(b(step, k) + col(4 * j));
#pragma unroll
      for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) muladd(x[i / 4].v[i % 4], y[j], sums[i][j]);
    }
  }
};

// Axis is one dimension of a pass that makes images: which pixels of the result are made
// together, by the same taps, and what they read.
struct Axis {
  i64 count, to, toStep;        // pixel i of count is the result's to + i·toStep
  i64 taps, tap, tapStep;       // tap j is the weights' tap + j·tapStep
  i64 from, fromStep, fromTap;  // and meets the source's from + i·fromStep + j·fromTap
  i64 size;                     // of the source
};

__device__ inline Axis forwardAxis(const Conv &v, i64 in, i64 out, i64 kernel) {
  Axis a = {out, 0, 1, kernel, 0, 1, -v.pad, v.stride, v.dilation, in};
  return a;
}

// backwardAxis is of the pixels whose distance from the padding's begin is phase, modulo the
// stride: weight k carries pixel i to i = o·stride + k·dilation − pad from result o.
__device__ inline Axis backwardAxis(const Conv &v, i64 in, i64 out, i64 kernel, i64 phase) {
  i64 s = v.stride, first = v.pad > phase ? (v.pad - phase + s - 1) / s : 0;
  Axis a = {0, first * s + phase - v.pad, s, 0, 0, 1, 0, 1, 0, out};
  if (a.to < in) a.count = (in - a.to + s - 1) / s;
  while (a.tap < kernel && a.tap < s && a.tap * v.dilation % s != phase) a.tap++;
  if (a.tap == kernel || a.tap == s) return a; // no weight meets these pixels
  while (a.tapStep * v.dilation % s != 0) a.tapStep++;
  a.taps = (kernel - a.tap + a.tapStep - 1) / a.tapStep;
  a.from = first - (a.tap * v.dilation - phase) / s;
  a.fromTap = -(a.tapStep * v.dilation / s);
  return a;
}

// divide is quick for numbers of 32 bits, which nearly all are.
__device__ inline i64 divide(i64 a, i64 b) { return (a | b) >> 32 == 0 ? (i64)((unsigned)a / (unsigned)b) : a / b; }

// Pixel is a place in one of several images.
struct Pixel {
  i64 image;
  int row, col;
  __device__ Pixel(i64 i, i64 rows, i64 cols) {
    i64 line = divide(i, cols);
    image = divide(line, rows), row = (int)(line - image * rows), col = (int)(i - line * cols);
  }
};

// Tap is one step of the products' sums: what of the weights, in which channel of the
// source, how far from the pixel's first one. It is read by a whole block.
struct Tap {
  i64 weight, plane;
  int row, col;
};

// images is the pass from source to result, forward or, for the gradient of the images,
// backward. Rows of the product are channels of the result, columns are pixels.
template <class T, int M, bool forward>
__device__ inline void images(const Conv &v, const T *source, const T *weight, const T *bias, T *result) {
  typedef Acc<T> A;
  typedef Tile<A, M> Block;
  __shared__ typename Block::Shared shared;
  __shared__ Tap table[2][depth];
  Block tile(shared);

  // Where this block stands: channels change fastest, so that neighbours read the same pixels.
  i64 inside = v.c / v.groups, outside = v.o / v.groups;
  i64 channels = forward ? outside : inside, planes = forward ? inside : outside;
  i64 phases = forward ? 1 : v.stride, b = blockIdx.x;
  i64 high = forward ? v.oh : (v.h + v.stride - 1) / v.stride, wide = forward ? v.ow : (v.w + v.stride - 1) / v.stride;
  i64 rowTiles = (channels + Block::rows - 1) / Block::rows, colTiles = (v.n * high * wide + cols - 1) / cols;
  i64 firstRow = b % rowTiles * Block::rows;
  b /= rowTiles;
  i64 firstCol = b % colTiles * cols;
  b /= colTiles;
  i64 phase = b % (phases * phases), group = b / (phases * phases);
  Axis h = forward ? forwardAxis(v, v.h, v.oh, v.kh) : backwardAxis(v, v.h, v.oh, v.kh, phase / phases);
  Axis w = forward ? forwardAxis(v, v.w, v.ow, v.kw) : backwardAxis(v, v.w, v.ow, v.kw, phase % phases);
  i64 pixels = v.n * h.count * w.count, taps = h.taps * w.taps, products = planes * taps;
  if (firstCol >= pixels) return;

  weight += group * outside * inside * v.window();
  i64 rowWeights = (forward ? inside : 1) * v.window(), planeWeights = (forward ? 1 : inside) * v.window();
  auto tap = [&](i64 k) {
    Tap t = {-1, 0, 0, 0};
    if (k < products) {
      i64 plane = divide(k, taps), rest = k - plane * taps, i = divide(rest, w.taps), j = rest - i * w.taps;
      t.weight = plane * planeWeights + (h.tap + i * h.tapStep) * v.kw + w.tap + j * w.tapStep;
      t.plane = plane * h.size * w.size;
      t.row = (int)(i * h.fromTap), t.col = (int)(j * w.fromTap);
    }
    return t;
  };

  // This thread fetches one pixel, and one product's weights.
  int t = threadIdx.x;
  i64 mine = firstCol + t % cols;
  bool pixel = mine < pixels;
  Pixel p(pixel ? mine : 0, h.count, w.count);
  source += (p.image * v.groups + group) * planes * h.size * w.size;
  int row = (int)(h.from + p.row * h.fromStep), col = (int)(w.from + p.col * w.fromStep);
  A nextA[Block::rows / 32], nextB[4];
  auto fetch = [&](int step) {
    Tap k = table[step % 2][t % depth];
#pragma unroll
    for (int i = 0; i < Block::rows / 32; i++) {
      i64 m = firstRow + t / depth + 32 * i;
      nextA[i] = k.weight >= 0 && m < channels ? load(weight + m * rowWeights + k.weight) : A(0);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      Tap k = table[step % 2][t / cols + 2 * i];
      int y = row + k.row, x = col + k.col;
      bool in = pixel && k.weight >= 0 && y >= 0 && y < h.size && x >= 0 && x < w.size;
      nextB[i] = in ? load(source + k.plane + y * w.size + x) : A(0);
    }
  };
  auto put = [&](int step) {
#pragma unroll
    for (int i = 0; i < Block::rows / 32; i++) tile.a(step, t % depth)[t / depth + 32 * i] = nextA[i];
#pragma unroll
    for (int i = 0; i < 4; i++) tile.b(step, t / cols + 2 * i)[t % cols] = nextB[i];
  };

  int steps = (int)((products + depth - 1) / depth);
  if (t < 2 * depth) table[t / depth][t % depth] = tap(t);
  __syncthreads();
  fetch(0);
  put(0);
  __syncthreads();
  for (int step = 0; step < steps; step++) {
    if (step + 1 < steps) fetch(step + 1);
    tile.multiply(step);
    if (step + 1 < steps) put(step + 1);
    if (t < depth) table[step % 2][t] = tap((i64)(step + 2) * depth + t);
    __syncthreads();
  }

  i64 lines = forward ? v.oh : v.h, columns = forward ? v.ow : v.w;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    i64 n = firstCol + Block::col(j);
    if (n >= pixels) continue;
    Pixel p(n, h.count, w.count);
    T *to = result + (p.image * v.groups + group) * channels * lines * columns + (h.to + p.row * h.toStep) * columns + w.to + p.col * w.toStep;
#pragma unroll
    for (int i = 0; i < M; i++) {
      i64 m = firstRow + Block::row(i);
      if (m < channels) store(to + m * lines * columns, tile.sum(i, j) + (bias ? load(bias + group * channels + m) : A(0)));
    }
  }
}

// weights is the pass that makes the weights' gradient: rows are channels of the result,
// columns the weights of one of them, and the products' sums go over pixels. They are cut in
// parts, whose sums lie in work, one after the other; a single part is rounded at once.
template <class T, int M>
__device__ inline void weights(const Conv &v, const T *x, const T *dy, T *dw, Acc<T> *work, i64 parts) {
  typedef Acc<T> A;
  typedef Tile<A, M> Block;
  struct Place { // of a product: a pixel of dy, and where its window begins in an image of x
    i64 dy, x;
    int row, col;
  };
  __shared__ typename Block::Shared shared;
  __shared__ Place table[2][depth];
  Block tile(shared);

  i64 inside = v.c / v.groups, channels = v.o / v.groups, columns = inside * v.window(), b = blockIdx.x;
  i64 rowTiles = (channels + Block::rows - 1) / Block::rows, colTiles = (columns + cols - 1) / cols;
  i64 firstRow = b % rowTiles * Block::rows;
  b /= rowTiles;
  i64 firstCol = b % colTiles * cols;
  b /= colTiles;
  i64 part = b % parts, group = b / parts;
  i64 pixels = v.n * v.oh * v.ow, each = (pixels + parts - 1) / parts;
  i64 from = part * each, to = from + each < pixels ? from + each : pixels;
  auto place = [&](i64 k) {
    Place q = {-1, 0, 0, 0};
    if (from + k < to) {
      Pixel p(from + k, v.oh, v.ow);
      q.dy = (p.image * v.o + group * channels) * v.oh * v.ow + p.row * v.ow + p.col;
      q.x = p.image * v.c * v.h * v.w;
      q.row = (int)(p.row * v.stride - v.pad), q.col = (int)(p.col * v.stride - v.pad);
    }
    return q;
  };

  // This thread fetches, of one product, rows and columns at distances of 32.
  int t = threadIdx.x, k = t % depth;
  i64 plane[4];
  int row[4], col[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    i64 n = firstCol + t / depth + 32 * i;
    Pixel p(n < columns ? n : 0, v.kh, v.kw);
    plane[i] = n < columns ? (group * inside + p.image) * v.h * v.w : -1;
    row[i] = (int)(p.row * v.dilation), col[i] = (int)(p.col * v.dilation);
  }
  A nextA[Block::rows / 32], nextB[4];
  auto fetch = [&](int step) {
    Place q = table[step % 2][k];
#pragma unroll
    for (int i = 0; i < Block::rows / 32; i++) {
      i64 m = firstRow + t / depth + 32 * i;
      nextA[i] = q.dy >= 0 && m < channels ? load(dy + q.dy + m * v.oh * v.ow) : A(0);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int y = q.row + row[i], c = q.col + col[i];
      bool in = q.dy >= 0 && plane[i] >= 0 && y >= 0 && y < v.h && c >= 0 && c < v.w;
      nextB[i] = in ? load(x + q.x + plane[i] + y * v.w + c) : A(0);
    }
  };
  auto put = [&](int step) {
#pragma unroll
    for (int i = 0; i < Block::rows / 32; i++) tile.a(step, k)[t / depth + 32 * i] = nextA[i];
#pragma unroll
    for (int i = 0; i < 4; i++) tile.b(step, k)[t / depth + 32 * i] = nextB[i];
  };

  int steps = to > from ? (int)((to - from + depth - 1) / depth) : 0;
  if (t < 2 * depth) table[t / depth][t % depth] = place(t);
  __syncthreads();
  fetch(0);
  put(0);
  __syncthreads();
  for (int step = 0; step < steps; step++) {
    if (step + 1 < steps) fetch(step + 1);
    tile.multiply(step);
    if (step + 1 < steps) put(step + 1);
    if (t < depth) table[step % 2][t] = place((i64)(step + 2) * depth + t);
    __syncthreads();
  }

  work += part * v.o * columns;
#pragma unroll
  for (int i = 0; i < M; i++) {
    i64 m = firstRow + Block::row(i);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      i64 n = firstCol + Block::col(j), at = (group * channels + m) * columns + n;
      if (m >= channels || n >= columns) continue;
      if (parts == 1) store(dw + at, tile.sum(i, j));
      else work[at] = tile.sum(i, j);
    }
  }
}

// The kernels below have a thread for each result, the next ones without tiles.

template <class T>
__device__ inline void direct(const Conv &v, const T *x, const T *w, const T *bias, T *y) {
  i64 at = index(), inside = v.c / v.groups;
  if (at >= v.n * v.o * v.oh * v.ow) return;
  Pixel p(at, v.oh, v.ow);
  i64 n = divide(p.image, v.o), o = p.image - n * v.o, group = divide(o, v.o / v.groups);
  Acc<T> sum = 0;
  x += (n * v.groups + group) * inside * v.h * v.w, w += o * inside * v.window();
  for (i64 c = 0; c < inside; c++, x += v.h * v.w)
    for (int i = 0; i < v.kh; i++) {
      int row = (int)(p.row * v.stride - v.pad + i * v.dilation);
      for (int j = 0; j < v.kw; j++, w++) {
        int col = (int)(p.col * v.stride - v.pad + j * v.dilation);
        if (row >= 0 && row < v.h && col >= 0 && col < v.w) sum = muladd(load(w), load(x + row * v.w + col), sum);
      }
    }
  store(y + at, bias ? sum + load(bias + o) : sum);
}

template <class T>
__device__ inline void directData(const Conv &v, const T *dy, const T *w, T *dx) {
  i64 at = index(), inside = v.c / v.groups, outside = v.o / v.groups;
  if (at >= v.n * v.c * v.h * v.w) return;
  Pixel p(at, v.h, v.w);
  i64 n = divide(p.image, v.c), c = p.image - n * v.c, group = divide(c, inside);
  Acc<T> sum = 0;
  dy += (n * v.groups + group) * outside * v.oh * v.ow, w += (group * outside * inside + c - group * inside) * v.window();
  int stride = (int)v.stride;
  for (i64 o = 0; o < outside; o++, dy += v.oh * v.ow, w += inside * v.window())
    for (int i = 0; i < v.kh; i++) {
      int row = (int)(p.row + v.pad - i * v.dilation);
      if (row < 0 || row % stride != 0 || row / stride >= v.oh) continue;
      for (int j = 0; j < v.kw; j++) {
        int col = (int)(p.col + v.pad - j * v.dilation);
        if (col < 0 || col % stride != 0 || col / stride >= v.ow) continue;
        sum = muladd(load(w + i * v.kw + j), load(dy + row / stride * v.ow + col / stride), sum);
      }
    }
  store(dx + at, sum);
}

// directWeights has a block for each weight, whose threads take pixels in turn.
template <class T>
__device__ inline void directWeights(const Conv &v, const T *x, const T *dy, T *dw) {
  typedef Acc<T> A;
  __shared__ A sums[256];
  i64 inside = v.c / v.groups, outside = v.o / v.groups;
  Pixel weight(blockIdx.x, v.kh, v.kw);
  i64 o = weight.image / inside, c = o / outside * inside + weight.image % inside;
  dy += o * v.oh * v.ow, x += c * v.h * v.w;

  Pixel at(threadIdx.x, v.oh, v.ow), step(blockDim.x, v.oh, v.ow);
  A sum = 0;
  while (at.image < v.n) {
    int row = (int)(at.row * v.stride - v.pad + weight.row * v.dilation), col = (int)(at.col * v.stride - v.pad + weight.col * v.dilation);
    if (row >= 0 && row < v.h && col >= 0 && col < v.w)
      sum = muladd(load(dy + at.image * v.o * v.oh * v.ow + at.row * v.ow + at.col), load(x + at.image * v.c * v.h * v.w + row * v.w + col), sum);
    at.col += step.col, at.row += step.row, at.image += step.image;
    if (at.col >= v.ow) at.col -= (int)v.ow, at.row++;
    if (at.row >= v.oh) at.row -= (int)v.oh, at.image++;
  }
  sum = blockSum(sum, sums);
  if (threadIdx.x == 0) store(dw + blockIdx.x, sum);
}

// Two blocks share a processor, but of float64.
#define TILED(T) KERNEL __launch_bounds__(256, sizeof(T) == 8 ? 1 : 2)

#define CONV(T, suffix)                                                                                              \
  TILED(T) conv64##suffix(Conv v, const T *x, const T *w, const T *bias, T *y) { images<T, 4, true>(v, x, w, bias, y); } \
  TILED(T) conv128##suffix(Conv v, const T *x, const T *w, const T *bias, T *y) { images<T, 8, true>(v, x, w, bias, y); } \
  TILED(T) conv_data64##suffix(Conv v, const T *dy, const T *w, T *dx) { images<T, 4, false>(v, dy, w, 0, dx); }       \
  TILED(T) conv_data128##suffix(Conv v, const T *dy, const T *w, T *dx) { images<T, 8, false>(v, dy, w, 0, dx); }      \
  TILED(T) conv_weights64##suffix(Conv v, const T *x, const T *dy, T *dw, Acc<T> *work, i64 parts) {                   \
    weights<T, 4>(v, x, dy, dw, work, parts);                                                                        \
  }                                                                                                                  \
  TILED(T) conv_weights128##suffix(Conv v, const T *x, const T *dy, T *dw, Acc<T> *work, i64 parts) {                  \
    weights<T, 8>(v, x, dy, dw, work, parts);                                                                        \
  }                                                                                                                  \
  /* conv_sum adds up the parts of each weight, in their order. */                                                   \
  KERNEL conv_sum##suffix(i64 n, const Acc<T> *work, i64 parts, T *dw) {                                             \
    for (i64 i = index(); i < n; i += span()) {                                                                      \
      Acc<T> sum = 0;                                                                                                \
      for (i64 p = 0; p < parts; p++) sum += work[p * n + i];                                                        \
      store(dw + i, sum);                                                                                            \
    }                                                                                                                \
  }                                                                                                                  \
  KERNEL conv_direct##suffix(Conv v, const T *x, const T *w, const T *bias, T *y) {                      \
    direct(v, x, w, bias, y);                                                                           \
  }                                                                                                                  \
  KERNEL conv_direct_data##suffix(Conv v, const T *dy, const T *w, T *dx) {                              \
    directData(v, dy, w, dx);                                                                           \
  }                                                                                                                  \
  KERNEL conv_direct_weights##suffix(Conv v, const T *x, const T *dy, T *dw) { directWeights(v, x, dy, dw); }
FLOATS(CONV)
