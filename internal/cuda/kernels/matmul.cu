// Products of matrices. A block makes a tile of 16·R rows and 64 columns of one product,
// each thread R·4 elements of it, from tiles of both operands in shared memory.
//
// However the work is cut, an element is the sum of its segments' sums, and its bits
// depend on its row, its column and the depth alone.
#include "common.cuh"

namespace {

const int DEPTH = 16, COLUMNS = 64;

// Matrices are a batch of them: the strides across, which is of rows for the left operand
// and of columns for the right one, and deep, along which products are summed.
template <class T> struct Matrices {
  const T *data;
  i64 across, deep, count; // count lie across
  Layout batch;
};

struct Product {
  i64 m, n, k, batch;
  i64 segment, splits; // of the depth; splits is 1 where a block does all of it
  i64 ld;              // from one row of the result to the next
  i64 add;             // to what is there
};

// Tile is a thread's part in bringing tiles of W rows or columns to shared memory. Threads
// of a warp read along the shorter stride, and write to different banks.
template <class T, int W> struct Tile {
  typedef Acc<T> A;
  static const int N = W * DEPTH / 256;
  const T *p;
  i64 across, deep, step;
  int i, k;
  bool inside[N / 2];
  A v[N];

  __device__ Tile(const Matrices<T> &m, i64 sample, i64 first, i64 from) {
    int t = threadIdx.x;
    bool down = m.deep <= m.across;
    k = down ? t % 8 : t / 32;
    i = down ? t / 8 : t % 32;
    across = 32 * m.across, deep = 8 * m.deep, step = DEPTH * m.deep;
    p = m.data + m.batch.at(sample) + (first + i) * m.across + (from + k) * m.deep;
    for (int e = 0; e < N / 2; e++) inside[e] = first + i + 32 * e < m.count;
  }

  // read takes the next tile, of which so many are left.
  __device__ void read(i64 left) {
#pragma unroll
    for (int e = 0; e < N; e++)
      v[e] = inside[e / 2] && k + e % 2 * 8 < left ? load(p + e / 2 * across + e % 2 * deep) : A(0);
    p += step;
  }

  __device__ void write(A (*s)[W + 4]) const {
#pragma unroll
    for (int e = 0; e < N; e++) s[k + e % 2 * 8][i + e / 2 * 32] = v[e];
  }
};

// finish rounds an element of the result.
template <class T> __device__ void finish(const Product &p, Acc<T> v, i64 row, i64 col, T *out, const T *bias, i64 stride) {
  T *to = out + row * p.ld + col;
  if (bias) v += load(bias + col * stride);
  if (p.add) v += load(to);
  store(to, v);
}

template <class T, int R> __device__ void tile(const Product &p, const Matrices<T> &x, const Matrices<T> &y, T *out, const T *bias, i64 stride, Acc<T> *parts) {
  typedef Acc<T> A;
  const int ROWS = 16 * R;
  __shared__ __align__(16) A xs[2][DEPTH][ROWS + 4];
  __shared__ __align__(16) A ys[2][DEPTH][COLUMNS + 4];

  i64 id = blockIdx.x, across = (p.n + COLUMNS - 1) / COLUMNS, down = (p.m + ROWS - 1) / ROWS;
  i64 col = id % across * COLUMNS;
  id /= across;
  i64 row = id % down * ROWS;
  id /= down;
  i64 sample = id % p.batch, split = id / p.batch;
  i64 from = split * p.segment, left = p.k - from;
  if (p.splits > 1 && left > p.segment) left = p.segment;

  Tile<T, ROWS> tx(x, sample, row, from);
  Tile<T, COLUMNS> ty(y, sample, col, from);
  int r = threadIdx.x / 16 * R, c = threadIdx.x % 16 * 4, now = 0;
  A total[R][4] = {}, sum[R][4] = {};
  if (left > 0) {
    tx.read(left), ty.read(left);
    tx.write(xs[0]), ty.write(ys[0]);
  }
  __syncthreads();
  for (i64 done = DEPTH; left > 0; done += DEPTH) {
    left -= DEPTH;
    if (left > 0) tx.read(left), ty.read(left); // while this tile is multiplied
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      A a[R], b[4];
#pragma unroll
      for (int i = 0; i < R; i++) a[i] = xs[now][k][r + i];
#pragma unroll
      for (int j = 0; j < 4; j++) b[j] = ys[now][k][c + j];
#pragma unroll
      for (int i = 0; i < R; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = mad(a[i], b[j], sum[i][j]);
    }
    if (done == p.segment || left <= 0) {
      done = 0;
#pragma unroll
      for (int i = 0; i < R; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) total[i][j] += sum[i][j], sum[i][j] = 0;
    }
    now ^= 1;
    if (left > 0) tx.write(xs[now]), ty.write(ys[now]);
    __syncthreads();
  }

  row += r, col += c;
#pragma unroll
  for (int i = 0; i < R; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (row + i >= p.m || col + j >= p.n) continue;
      i64 to = sample * p.m + row + i;
      if (p.splits > 1) parts[(split * p.batch * p.m + to) * p.n + col + j] = total[i][j];
      else finish(p, total[i][j], to, col + j, out, bias, stride);
    }
}

} // namespace

// Of these, BLOCKS fit in one multiprocessor.
#define MATMUL(T, R, BLOCKS, NAME)                                                                                          \
  KERNEL __launch_bounds__(256, BLOCKS)                                                                                     \
  NAME(Product p, Matrices<T> x, Matrices<T> y, T *out, const T *bias, i64 stride, Acc<T> *parts) {                         \
    tile<T, R>(p, x, y, out, bias, stride, parts);                                                                          \
  }
MATMUL(float, 4, 3, matmul4_f32)
MATMUL(double, 4, 1, matmul4_f64)
MATMUL(b16, 4, 3, matmul4_b16)
MATMUL(f16, 4, 3, matmul4_f16)
MATMUL(float, 8, 2, matmul8_f32)
MATMUL(b16, 8, 2, matmul8_b16)
MATMUL(f16, 8, 2, matmul8_f16)

// matmuldirect is for few elements and one segment: a thread for each, as tiles would be
// all but empty.
#define DIRECT(T, S)                                                                                                 \
  KERNEL matmuldirect##S(Product p, Matrices<T> x, Matrices<T> y, T *out, const T *bias, i64 stride) {               \
    i64 i = index(), row = i / p.n, col = i % p.n, sample = row / p.m;                                               \
    if (sample >= p.batch) return;                                                                                   \
    const T *a = x.data + x.batch.at(sample) + row % p.m * x.across, *b = y.data + y.batch.at(sample) + col * y.across; \
    Acc<T> sum = 0;                                                                                                  \
    for (i64 k = 0; k < p.k; k++) sum = mad(load(a + k * x.deep), load(b + k * y.deep), sum);                        \
    finish(p, sum + 0, row, col, out, bias, stride); /* a tile's sum is never -0 */                                  \
  }
FLOATS(DIRECT)

// matmulsum adds up the segments' sums.
#define SUM(T, S)                                                                            \
  KERNEL matmulsum##S(Product p, const Acc<T> *parts, T *out, const T *bias, i64 stride) {   \
    i64 count = p.batch * p.m * p.n;                                                         \
    for (i64 i = index(); i < count; i += span()) {                                          \
      Acc<T> v = 0;                                                                          \
      for (i64 s = 0; s < p.splits; s++) v += parts[s * count + i];                          \
      finish(p, v, i / p.n, i % p.n, out, bias, stride);                                     \
    }                                                                                        \
  }
FLOATS(SUM)
