#include "common.cuh"

// Pool has windows of kernel × kernel over planes of h × w, oh × ow of them.
struct Pool { i64 planes, h, w, oh, ow, kernel, stride, pad; };

// maxPool writes the first of the largest elements, or the last NaN, and its place in the
// window.
template <class T, class I> __device__ inline void maxPool(const Pool &p, const T *x, T *y, I *at) {
  i64 pixels = p.oh * p.ow;
  for (i64 i = index(); i < p.planes * pixels; i += span()) {
    i64 plane = i / pixels;
    int pixel = (int)(i - plane * pixels);
    int top = (int)(pixel / (int)p.ow * p.stride - p.pad), left = (int)(pixel % (int)p.ow * p.stride - p.pad);
    int firstRow = top < 0 ? -top : 0, firstCol = left < 0 ? -left : 0;
    const T *image = x + plane * p.h * p.w;
    Acc<T> best = load(image + (top + firstRow) * p.w + left + firstCol);
    i64 place = firstRow * p.kernel + firstCol;
    for (int r = firstRow; r < p.kernel && top + r < p.h; r++)
      for (int c = firstCol; c < p.kernel && left + c < p.w; c++) {
        Acc<T> v = load(image + (top + r) * p.w + left + c);
        if (v > best || v != v) best = v, place = r * p.kernel + c;
      }
    store(y + i, best);
    store(at + i, place);
  }
}

// maxPoolBackward adds up, for each element, what the windows around it that chose it pass,
// in their order.
template <class T, class I> __device__ inline void maxPoolBackward(const Pool &p, const T *dy, const I *at, T *dx) {
  i64 pixels = p.h * p.w;
  for (i64 i = index(); i < p.planes * pixels; i += span()) {
    i64 plane = i / pixels;
    int pixel = (int)(i - plane * pixels), row = (int)(pixel / (int)p.w + p.pad), col = (int)(pixel % (int)p.w + p.pad);
    int stride = (int)p.stride, kernel = (int)p.kernel;
    int top = row < kernel ? 0 : (row - kernel) / stride + 1, left = col < kernel ? 0 : (col - kernel) / stride + 1;
    Acc<T> sum = 0;
    for (int r = top; r < p.oh && r * stride <= row; r++)
      for (int c = left; c < p.ow && c * stride <= col; c++) {
        i64 from = (plane * p.oh + r) * p.ow + c;
        if (load(at + from) == (i64)(row - r * stride) * kernel + col - c * stride) sum += load(dy + from);
      }
    store(dx + i, sum);
  }
}

#define MAXPOOL(T, suffix)                                                                                           \
  KERNEL max_pool##suffix##_u8(Pool p, const T *x, T *y, u8 *at) { maxPool(p, x, y, at); }                           \
  KERNEL max_pool##suffix##_i32(Pool p, const T *x, T *y, i32 *at) { maxPool(p, x, y, at); }                         \
  KERNEL max_pool_backward##suffix##_u8(Pool p, const T *dy, const u8 *at, T *dx) { maxPoolBackward(p, dy, at, dx); } \
  KERNEL max_pool_backward##suffix##_i32(Pool p, const T *dy, const i32 *at, T *dx) { maxPoolBackward(p, dy, at, dx); }
FLOATS(MAXPOOL)
