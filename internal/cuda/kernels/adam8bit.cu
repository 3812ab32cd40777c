#include "rule.cuh"
#include "table.cuh"

// Code is a dynamic tree code of 8 bits (Dettmers, 2016), with the same values as the
// host's code8: sizes in order, 0, then parts of [0.1, 1] times 10⁻⁶, 10⁻⁵ … 1, twice as
// many each time, and 1. The last have linear bits, 6 beside a sign and 7 without.
struct Code {
  float sizes[256];
  unsigned above[256]; // halfway to the next size, as bits, which have the order of what they stand for

  static __device__ float size(int i, int linear) {
    int k = i + linear - 6, n = 1; // n parts begin where k is n
    double tens = linear == 6 ? 1e6 : 1e7;
    if (i == 0) return 0;
    if (k >= 2 << linear) return 1;
    for (; 2 * n <= k; n *= 2) tens /= 10;
    return (float)(1 / tens * (0.1 + 0.9 * (k - n + 0.5) / n));
  }

  // init makes entry i of the tables.
  __device__ void init(int i, int linear) {
    float next = size(i + 1, linear);
    sizes[i] = size(i, linear);
    above[i] = sizes[i] < next ? floatToBits((sizes[i] + next) / 2) : 0x7fffffff;
  }

  // nearest is the number of the nearest size, of two equally near the smaller.
  __device__ int nearest(unsigned bits) const {
    int s = 0;
    for (int k = 128; k > 0; k /= 2)
      if (above[s + k - 1] < bits) s += k;
    return s;
  }
};

// topOf16 is the greatest of 16.
__device__ inline unsigned topOf16(const unsigned *v) {
  unsigned top = 0;
  for (int k = 0; k < 16; k++) top = v[k] > top ? v[k] : top;
  return top;
}

// scaleOf is a block's greatest size from its bits, and its inverse. Below the normal
// numbers, which have none, both are 0.
__device__ inline float scaleOf(unsigned top, float &inverse) {
  inverse = top < 1 << 23 ? 0 : 1 / bitsToFloat(top);
  return top < 1 << 23 ? 0 : bitsToFloat(top);
}

// Stepped8 is a parameter of n elements.
struct Stepped8 {
  const void *g;
  void *w;
  u8 *means, *squares;
  float *meanScale, *squareScale;
  i64 n;
  int first, dense;
  u64 seed;
};
typedef Table<Stepped8, 50> Steps8;

// A block of threads takes 16 blocks of elements, whose moments share a scale. A signed code
// c is sizes[c] for c to 128, and −sizes[256−c] for others: there is no −1. No square but 0
// becomes 0, whose root would make a giant step.
template <class T>
__device__ inline void adam8bit(const Steps8 &steps, u64 tick, float by, const Numbers &numbers) {
  const Stepped8 p = steps.mine();
  const T *g = (const T *)p.g;
  T *w = (T *)p.w;
  const i64 n = p.n;
  const Key key = {p.seed, tick, 0};
  __shared__ Code either, positive;
  __shared__ unsigned sizes[2][256], tops[32];
  int t = threadIdx.x;
  float f[8];
  numbers.to(f);
  either.init(t, 6);
  positive.init(t, 7);
  __syncthreads();
  const i64 first = 16 * (i64)(blockIdx.x - p.first);
  for (i64 block = first; block < first + 16 && block * 256 < n; block++) {
    i64 i = block * 256 + t;
    float mean = 0, square = 0, inverse;
    if (i < n) {
      int c = p.means[i];
      mean = (c <= 128 ? either.sizes[c] : -either.sizes[256 - c]) * p.meanScale[block];
      square = positive.sizes[p.squares[i]] * p.squareScale[block];
      float weight[1], largest = 0;
      loadFew(weight, w, i);
      adamStep(f, (float)load(g + i) * by, weight[0], mean, square, largest);
      roundFew(key, 1, w, weight, i);
    }
    sizes[0][t] = floatToBits(mean) & 0x7fffffff; // NaN is on top
    sizes[1][t] = floatToBits(square) & 0x7fffffff;
    __syncthreads();
    if (t < 32) tops[t] = topOf16(sizes[t / 16] + t % 16 * 16);
    __syncthreads();
    float scale = scaleOf(topOf16(tops), inverse);
    if (i < n) {
      unsigned bits = floatToBits(mean * inverse);
      int s = either.nearest(bits & 0x7fffffff);
      p.means[i] = (u8)(bits >> 31 ? -(s < 127 ? s : 127) : s);
    }
    if (t == 0) p.meanScale[block] = scale;
    scale = scaleOf(topOf16(tops + 16), inverse);
    if (i < n) {
      int s = positive.nearest(floatToBits(square * inverse));
      p.squares[i] = (u8)(s == 0 && square > 0 ? 1 : s);
    }
    if (t == 0) p.squareScale[block] = scale;
  }
}

#define ADAM_8BIT(T, S) \
  KERNEL adam_8bit##S(Steps8 steps, u64 tick, double scale, Numbers numbers) { adam8bit<T>(steps, tick, (float)scale, numbers); }
ADAM_8BIT(float, _f32)
ADAM_8BIT(b16, _b16)
ADAM_8BIT(f16, _f16)
