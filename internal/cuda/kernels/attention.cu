// Attention without the matrix of scores in memory (Dao et al., 2022): a block takes 64
// rows of one head and meets the other side's rows a block at a time. Backward makes the
// scores twice, once for dq by queries and once for dk and dv by keys, so that every sum
// has one thread and one order.
#include "common.cuh"

namespace {

// Heads are an array [b h t d] of any strides.
template <class T> struct Heads {
  T *data;
  i64 sample, head, row, col;
};

struct Attention {
  i64 heads, queries, keys, width;
  i64 causal;
  double scale;
};

const int ROWS = 64, DEPTH = 32; // DEPTH is of a chunk of what is summed over

// Block is what the threads of a block have in common. The other side's rows come COLS at
// a time, and GROUPS · 64 columns of results are made.
template <class T, int GROUPS> struct Block {
  typedef Acc<T> A;
  static const int COLS = sizeof(A) == 8 ? 32 : 64, C = COLS / 16; // of a thread
  static const int LEFT = DEPTH * (ROWS + 4), RIGHT = DEPTH * (COLS + 4), WIDE = DEPTH * (64 * GROUPS + 4);
  static const int CHUNKS = LEFT + RIGHT > WIDE ? LEFT + RIGHT : WIDE;
  static const int SHARED = CHUNKS + COLS * (ROWS + 4);

  A *chunks; // of both operands, of the second one of a product, or of what rows share
  A *mixed;  // [COLS][ROWS + 4]: what the other side's rows count for each row
  int r, c;  // a thread's first row and column

  __device__ Block(A *shared) : chunks(shared), mixed(shared + CHUNKS), r(threadIdx.x / 16 * 4), c(threadIdx.x % 16) {}

  // dots adds to s the products of rows of x, times scale, with rows of y.
  __device__ void dots(A (&s)[4][C], const Heads<T> &x, i64 first, i64 rows, A scale, const Heads<T> &y, i64 from, i64 cols, i64 width) {
    A *left = chunks, *right = chunks + LEFT;
    for (i64 at = 0; at < width; at += DEPTH) {
      __syncthreads();
      bring<ROWS>(left, x, first, rows, at, width, scale);
      bring<COLS>(right, y, from, cols, at, width, 1);
      __syncthreads();
      if (first + r >= rows || from + c * C >= cols) continue;
      int deep = width - at < DEPTH ? width - at : DEPTH;
#pragma unroll 4
      for (int k = 0; k < deep; k++) {
        A a[4], b[C];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = left[k * (ROWS + 4) + r + i];
#pragma unroll
        for (int j = 0; j < C; j++) b[j] = right[k * (COLS + 4) + c * C + j];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < C; j++) s[i][j] = mad(a[i], b[j], s[i][j]);
      }
    }
  }

  // bring writes a chunk of N rows, transposed. Threads of a warp read 8 columns of 4 rows
  // and write to different banks.
  template <int N> __device__ void bring(A *to, const Heads<T> &x, i64 first, i64 rows, i64 at, i64 width, A scale) {
    int t = threadIdx.x;
#pragma unroll
    for (int e = 0; e < N * DEPTH / 256; e++) {
      int k = t % 8 + e % 4 * 8, i = t / 8 + e / 4 * 32;
      A v = 0;
      if (first + i < rows && at + k < width) v = load(x.data + (first + i) * x.row + (at + k) * x.col) * scale;
      to[k * (N + 4) + i] = v;
    }
  }

  // mix writes what each row counts of the other side's rows.
  __device__ void mix(const A (&p)[4][C]) {
    __syncthreads(); // it may still be read
#pragma unroll
    for (int j = 0; j < C; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) mixed[(c * C + j) * (ROWS + 4) + r + i] = p[i][j];
  }

  // add adds to out the mixture of y's rows, of columns from col on.
  __device__ void add(A (&out)[GROUPS][4][4], const Heads<T> &y, i64 from, i64 rows, i64 col, i64 width) {
    int t = threadIdx.x;
    for (int at = 0; at < COLS && from + at < rows; at += DEPTH) {
      __syncthreads();
#pragma unroll
      for (int e = 0; e < DEPTH * GROUPS * 64 / 256; e++) {
        int k = t / 64 + e % 8 * 4, n = t % 64 + e / 8 * 64;
        A v = 0;
        if (from + at + k < rows && col + n < width) v = load(y.data + (from + at + k) * y.row + (col + n) * y.col);
        chunks[k * (64 * GROUPS + 4) + n] = v;
      }
      __syncthreads();
      if (col + c * 4 >= width) continue;
      int deep = rows - from - at < DEPTH ? rows - from - at : DEPTH;
#pragma unroll 2
      for (int k = 0; k < deep; k++) {
        A a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = mixed[(at + k) * (ROWS + 4) + r + i];
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
          A b[4];
#pragma unroll
          for (int j = 0; j < 4; j++) b[j] = chunks[k * (64 * GROUPS + 4) + g * 64 + c * 4 + j];
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) out[g][i][j] = mad(a[i], b[j], out[g][i][j]);
        }
      }
    }
  }

  // put writes rows of a result, each times its factor.
  __device__ void put(const A (&out)[GROUPS][4][4], const A (&by)[4], const Heads<T> &y, i64 first, i64 rows, i64 col, i64 width) {
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          i64 row = first + r + i, n = col + g * 64 + c * 4 + j;
          if (row < rows && n < width) store(y.data + row * y.row + n * y.col, out[g][i][j] * by[i]);
        }
  }

  // share gives out what the 16 threads of a row have, one after the other.
  __device__ void share(const A (&v)[4]) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; i++) chunks[(r + i) * 17 + c] = v[i];
    __syncthreads();
  }
  __device__ A shared(int i, int thread) const { return chunks[(r + i) * 17 + thread]; }
};

// Place is a block's: 64 rows of one head, the last ones first, as those may see most, and
// some columns of the result.
struct Place {
  i64 col, first, at; // at is the head's number
  __device__ Place(i64 rows, i64 width, int columns) {
    i64 groups = width > columns ? (width + columns - 1) / columns : 1, tiles = (rows + ROWS - 1) / ROWS, id = blockIdx.x;
    col = id % groups * columns;
    id /= groups;
    first = (tiles - 1 - id % tiles) * ROWS;
    at = id / tiles;
  }
  template <class T> __device__ Heads<T> of(Heads<T> h, i64 heads) const {
    h.data += at / heads * h.sample + at % heads * h.head;
    return h;
  }
};

template <class T, int GROUPS> __device__ void forward(const Attention &a, Heads<T> q, Heads<T> k, Heads<T> v, Heads<T> y, Acc<T> *sums) {
  typedef Acc<T> A;
  typedef Block<T, GROUPS> B;
  __shared__ __align__(16) A shared[B::SHARED];
  B b(shared);
  Place p(a.queries, a.width, 64 * GROUPS);
  q = p.of(q, a.heads), k = p.of(k, a.heads), v = p.of(v, a.heads), y = p.of(y, a.heads);

  A top[4], sum[4] = {}, out[GROUPS][4][4] = {};
#pragma unroll
  for (int i = 0; i < 4; i++) top[i] = -INFINITY;
  i64 last = a.causal && p.first + ROWS < a.keys ? p.first + ROWS : a.keys;
  for (i64 from = 0; from < last; from += B::COLS) {
    A s[4][B::C] = {}, most[4];
    b.dots(s, q, p.first, a.queries, (A)a.scale, k, from, a.keys, a.width);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      i64 seen = a.causal && p.first + b.r + i < a.keys ? p.first + b.r + i + 1 : a.keys;
      most[i] = -INFINITY;
#pragma unroll
      for (int j = 0; j < B::C; j++) {
        if (from + b.c * B::C + j >= seen) s[i][j] = -INFINITY;
        if (s[i][j] > most[i]) most[i] = s[i][j]; // a NaN shows in the sum
      }
    }
    b.share(most);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      A now = top[i];
      for (int t = 0; t < 16; t++) {
        A m = b.shared(i, t);
        if (m > now) now = m;
      }
      A shift = now == -INFINITY ? 0 : now, by = exp(top[i] - shift); // of nothing but -∞
      top[i] = now;
      sum[i] *= by;
#pragma unroll
      for (int j = 0; j < B::C; j++) sum[i] += s[i][j] = exp(s[i][j] - shift);
#pragma unroll
      for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int j = 0; j < 4; j++) out[g][i][j] *= by;
    }
    b.mix(s);
    b.add(out, v, from, last, p.col, a.width);
  }
  b.share(sum);
  A by[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    A all = 0;
    for (int t = 0; t < 16; t++) all += b.shared(i, t);
    by[i] = 1 / all;
    i64 row = p.first + b.r + i;
    if (p.col == 0 && b.c == 0 && row < a.queries) sums[p.at * a.queries + row] = top[i] + log(all);
  }
  b.put(out, by, y, p.first, a.queries, p.col, a.width);
}

// gradient is by the scores of one block: p, which is e^(s − sum), and p·(dp − inner) in
// place of dp, where a query sees a key.
template <class A> __device__ void gradient(A &s, A &dp, bool seen, A sum, A inner) {
  s = seen ? exp(s - sum) : A(0);
  dp = seen ? s * (dp - inner) : A(0);
}

template <class T, int GROUPS>
__device__ void byQueries(const Attention &a, Heads<T> q, Heads<T> k, Heads<T> v, Heads<T> dy, const Acc<T> *sums, const Acc<T> *inner, Heads<T> dq) {
  typedef Acc<T> A;
  typedef Block<T, GROUPS> B;
  __shared__ __align__(16) A shared[B::SHARED];
  B b(shared);
  Place p(a.queries, a.width, 64 * GROUPS);
  q = p.of(q, a.heads), k = p.of(k, a.heads), v = p.of(v, a.heads), dy = p.of(dy, a.heads), dq = p.of(dq, a.heads);
  sums += p.at * a.queries, inner += p.at * a.queries;

  A out[GROUPS][4][4] = {}, by[4];
#pragma unroll
  for (int i = 0; i < 4; i++) by[i] = a.scale;
  i64 last = a.causal && p.first + ROWS < a.keys ? p.first + ROWS : a.keys;
  for (i64 from = 0; from < last; from += B::COLS) {
    A s[4][B::C] = {}, dp[4][B::C] = {};
    b.dots(s, q, p.first, a.queries, (A)a.scale, k, from, a.keys, a.width);
    b.dots(dp, dy, p.first, a.queries, 1, v, from, a.keys, a.width);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      i64 row = p.first + b.r + i;
      A sum = row < a.queries ? sums[row] : A(0), in = row < a.queries ? inner[row] : A(0);
#pragma unroll
      for (int j = 0; j < B::C; j++) {
        i64 key = from + b.c * B::C + j;
        gradient(s[i][j], dp[i][j], row < a.queries && key < a.keys && (!a.causal || key <= row), sum, in);
      }
    }
    b.mix(dp);
    b.add(out, k, from, last, p.col, a.width);
  }
  b.put(out, by, dq, p.first, a.queries, p.col, a.width);
}

template <class T, int GROUPS>
__device__ void byKeys(const Attention &a, Heads<T> q, Heads<T> k, Heads<T> v, Heads<T> dy, const Acc<T> *sums, const Acc<T> *inner, Heads<T> dk, Heads<T> dv) {
  typedef Acc<T> A;
  typedef Block<T, GROUPS> B;
  __shared__ __align__(16) A shared[B::SHARED];
  B b(shared);
  Place p(a.keys, a.width, 64 * GROUPS);
  q = p.of(q, a.heads), k = p.of(k, a.heads), v = p.of(v, a.heads), dy = p.of(dy, a.heads), dk = p.of(dk, a.heads), dv = p.of(dv, a.heads);
  sums += p.at * a.queries, inner += p.at * a.queries;

  A outK[GROUPS][4][4] = {}, outV[GROUPS][4][4] = {}, scale[4], one[4];
#pragma unroll
  for (int i = 0; i < 4; i++) scale[i] = a.scale, one[i] = 1;
  for (i64 from = a.causal ? p.first / B::COLS * B::COLS : 0; from < a.queries; from += B::COLS) {
    A s[4][B::C] = {}, dp[4][B::C] = {};
    b.dots(s, k, p.first, a.keys, (A)a.scale, q, from, a.queries, a.width);
    b.dots(dp, v, p.first, a.keys, 1, dy, from, a.queries, a.width);
#pragma unroll
    for (int j = 0; j < B::C; j++) {
      i64 row = from + b.c * B::C + j;
      A sum = row < a.queries ? sums[row] : A(0), in = row < a.queries ? inner[row] : A(0);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        i64 key = p.first + b.r + i;
        gradient(s[i][j], dp[i][j], row < a.queries && key < a.keys && (!a.causal || key <= row), sum, in);
      }
    }
    b.mix(s);
    b.add(outV, dy, from, a.queries, p.col, a.width);
    b.mix(dp);
    b.add(outK, q, from, a.queries, p.col, a.width);
  }
  b.put(outK, scale, dk, p.first, a.keys, p.col, a.width);
  b.put(outV, one, dv, p.first, a.keys, p.col, a.width);
}

} // namespace

// attentioninner is Σ dy·y of each query; 16 threads add up one.
#define INNER(T, S)                                                                                       \
  KERNEL attentioninner##S(Attention a, Heads<T> y, Heads<T> dy, i64 count, Acc<T> *inner) {              \
    __shared__ Acc<T> parts[256];                                                                         \
    int t = threadIdx.x % 16;                                                                             \
    i64 at = (i64)blockIdx.x * 16 + threadIdx.x / 16;                                                     \
    i64 head = at / a.queries, row = at % a.queries;                                                      \
    i64 from = head / a.heads * y.sample + head % a.heads * y.head + row * y.row;                         \
    i64 dfrom = head / a.heads * dy.sample + head % a.heads * dy.head + row * dy.row;                     \
    Acc<T> sum = 0;                                                                                       \
    for (i64 i = t; at < count && i < a.width; i += 16)                                                   \
      sum += load(y.data + from + i * y.col) * load(dy.data + dfrom + i * dy.col);                        \
    parts[threadIdx.x] = sum;                                                                             \
    __syncthreads();                                                                                      \
    if (t != 0 || at >= count) return;                                                                    \
    for (int i = 1; i < 16; i++) sum += parts[threadIdx.x + i];                                           \
    inner[at] = sum;                                                                                      \
  }
FLOATS(INNER)

// Of these, BLOCKS fit in one multiprocessor.
#define ATTENTION(T, GROUPS, BLOCKS, S)                                                                                                   \
  KERNEL __launch_bounds__(256, BLOCKS)                                                                                                   \
  attention##S(Attention a, Heads<T> q, Heads<T> k, Heads<T> v, Heads<T> y, Acc<T> *sums) {                                               \
    forward<T, GROUPS>(a, q, k, v, y, sums);                                                                                              \
  }                                                                                                                                       \
  KERNEL __launch_bounds__(256, BLOCKS)                                                                                                   \
  attentionq##S(Attention a, Heads<T> q, Heads<T> k, Heads<T> v, Heads<T> dy, const Acc<T> *sums, const Acc<T> *inner, Heads<T> dq) {     \
    byQueries<T, GROUPS>(a, q, k, v, dy, sums, inner, dq);                                                                                \
  }                                                                                                                                       \
  KERNEL __launch_bounds__(256, BLOCKS)                                                                                                   \
  attentionkv##S(Attention a, Heads<T> q, Heads<T> k, Heads<T> v, Heads<T> dy, const Acc<T> *sums, const Acc<T> *inner, Heads<T> dk,      \
                 Heads<T> dv) {                                                                                                           \
    byKeys<T, GROUPS>(a, q, k, v, dy, sums, inner, dk, dv);                                                                               \
  }
ATTENTION(float, 1, 2, 64_f32)
ATTENTION(float, 2, 1, 128_f32)
ATTENTION(double, 1, 1, 64_f64)
ATTENTION(b16, 1, 2, 64_b16)
ATTENTION(b16, 2, 1, 128_b16)
ATTENTION(f16, 1, 2, 64_f16)
ATTENTION(f16, 2, 1, 128_f16)
