#include "common.cuh"

// Windows are those of one dimension: out of them over n elements, adaptive where kernel
// is 0.
struct Windows {
  i64 n, out, kernel, stride, pad, padded;
  // of is where window i begins and ends, and how many elements it counts.
  __device__ void of(int i, int &from, int &to, int &count) const {
    if (kernel == 0) {
      from = (int)(i * n / out), to = (int)(((i + 1) * n + out - 1) / out), count = to - from;
      return;
    }
    int at = (int)(i * stride - pad), end = (int)(at + kernel);
    from = at > 0 ? at : 0, to = end < n ? end : (int)n, count = to - from;
    if (padded) count = (end < n + pad ? end : (int)(n + pad)) - at;
  }
  // around is the first and the last window that may hold element e.
  __device__ void around(int e, int &first, int &last) const {
    if (kernel == 0) {
      first = (int)(e * out / n), last = (int)(((e + 1) * out - 1) / n);
      return;
    }
    i64 low = e + pad - kernel + 1, high = (e + pad) / stride;
    first = low > 0 ? (int)((low + stride - 1) / stride) : 0, last = (int)(high < out - 1 ? high : out - 1);
  }
};

template <class T> __device__ inline void averagePool(const T *x, T *y, i64 planes, const Windows &rows, const Windows &cols) {
  i64 pixels = rows.out * cols.out;
  for (i64 i = index(); i < planes * pixels; i += span()) {
    i64 plane = i / pixels;
    int at = (int)(i - plane * pixels), top, bottom, left, right, high, wide;
    rows.of(at / (int)cols.out, top, bottom, high);
    cols.of(at % (int)cols.out, left, right, wide);
    Acc<T> sum = 0;
    for (int r = top; r < bottom; r++)
      for (int c = left; c < right; c++) sum += load(x + plane * rows.n * cols.n + r * cols.n + c);
    store(y + i, sum / (Acc<T>)((i64)high * wide));
  }
}

// averagePoolBackward adds up the shares of all windows around an element, in their order.
template <class T> __device__ inline void averagePoolBackward(const T *dy, T *dx, i64 planes, const Windows &rows, const Windows &cols) {
  i64 pixels = rows.n * cols.n;
  for (i64 i = index(); i < planes * pixels; i += span()) {
    i64 plane = i / pixels;
    int at = (int)(i - plane * pixels), row = at / (int)cols.n, col = at % (int)cols.n, top, bottom, left, right;
    rows.around(row, top, bottom);
    cols.around(col, left, right);
    Acc<T> sum = 0;
    for (int r = top; r <= bottom; r++)
      for (int c = left; c <= right; c++) {
        int from, to, high, wide;
        rows.of(r, from, to, high);
        cols.of(c, from, to, wide);
        sum += load(dy + (plane * rows.out + r) * cols.out + c) / (Acc<T>)((i64)high * wide);
      }
    store(dx + i, sum);
  }
}

#define AVGPOOL(T, suffix)                                                                                           \
  KERNEL average_pool##suffix(const T *x, T *y, i64 planes, Windows rows, Windows cols) {                            \
    averagePool(x, y, planes, rows, cols);                                                                           \
  }                                                                                                                  \
  KERNEL average_pool_backward##suffix(const T *dy, T *dx, i64 planes, Windows rows, Windows cols) {                 \
    averagePoolBackward(dy, dx, planes, rows, cols);                                                                 \
  }
FLOATS(AVGPOOL)
