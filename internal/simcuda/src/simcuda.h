// What CUDA C needs to compile for the host. A block runs on one thread of the machine:
// its threads run one after the other, and one that waits at a barrier becomes a fiber.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__ __attribute__((flatten)) // build.sh finds kernels by it
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __syncthreads() simcuda_sync()

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };

// Vector types are aligned as on the device, so that the processor refuses what the
// device would refuse.
#define SIMCUDA_VECTORS(T, name)                                          \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                      \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }              \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SIMCUDA_VECTORS(unsigned char, uchar)
SIMCUDA_VECTORS(short, short)
SIMCUDA_VECTORS(unsigned short, ushort)
SIMCUDA_VECTORS(int, int)
SIMCUDA_VECTORS(unsigned, uint)
SIMCUDA_VECTORS(float, float)
SIMCUDA_VECTORS(double, double)
SIMCUDA_VECTORS(long long, longlong)
SIMCUDA_VECTORS(unsigned long long, ulonglong)

// The thread that runs now.
struct SimThread {
  uint3 threadIdx, blockIdx;
  dim3 blockDim, gridDim;
  unsigned next, count; // threads of the block: the next to start, and how many there are
  bool down;            // the last thread starts first
  unsigned char *shared;
  void *worker; // of block.cpp
};
extern __thread SimThread simcuda_thread __attribute__((tls_model("initial-exec"), visibility("default")));
#define threadIdx (simcuda_thread.threadIdx)
#define blockIdx (simcuda_thread.blockIdx)
#define blockDim (simcuda_thread.blockDim)
#define gridDim (simcuda_thread.gridDim)

// DYNAMIC_SHARED declares T *name, the shared memory whose size the launch gives.
#define DYNAMIC_SHARED(T, name) T *name = (T *)simcuda_thread.shared

__attribute__((visibility("default"))) void simcuda_sync();

#define SIMCUDA_LEAST(T)                                   \
  inline T min(T a, T b) { return b < a ? b : a; }         \
  inline T max(T a, T b) { return a < b ? b : a; }
SIMCUDA_LEAST(int)
SIMCUDA_LEAST(unsigned)
SIMCUDA_LEAST(long)
SIMCUDA_LEAST(unsigned long)
SIMCUDA_LEAST(long long)
SIMCUDA_LEAST(unsigned long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
template <class To, class From> inline To simcuda_bits(From f) { To t; static_assert(sizeof t == sizeof f, ""); memcpy(&t, &f, sizeof t); return t; }
inline float __uint_as_float(unsigned u) { return simcuda_bits<float>(u); }
inline float __int_as_float(int u) { return simcuda_bits<float>(u); }
inline unsigned __float_as_uint(float f) { return simcuda_bits<unsigned>(f); }
inline int __float_as_int(float f) { return simcuda_bits<int>(f); }
inline long long __double_as_longlong(double d) { return simcuda_bits<long long>(d); }
inline double __longlong_as_double(long long i) { return simcuda_bits<double>(i); }
template <class T> inline T __ldg(const T *p) { return *p; }

// simcuda_next makes the next thread of the block that has not started the current one.
inline bool simcuda_next() {
  SimThread &s = simcuda_thread;
  if (s.next == s.count) return false;
  unsigned i = s.next++;
  if (s.down) i = s.count - 1 - i;
  unsigned x = blockDim.x, y = blockDim.y;
  if (x == s.count) threadIdx = {i, 0, 0};
  else threadIdx = {i % x, i / x % y, i / (x * y)};
  return true;
}

// SimKernel is what the driver finds by a kernel's name.
struct SimKernel {
  const char *name;
  unsigned count;        // of parameters
  const unsigned *sizes; // of each, in bytes
  const bool *pointers;  // is it one
  void (*run)(void **params); // runs threads until all of the block have started
};

template <auto K> struct SimOf;
template <class... A, void (*K)(A...)> struct SimOf<K> {
  static constexpr unsigned count = sizeof...(A), sizes[] = {sizeof(A)..., 0};
  static constexpr bool pointers[] = {std::is_pointer<A>::value..., false};
  template <size_t... I> static void call(void **p, std::index_sequence<I...>) {
    std::tuple<A...> a(*(A *)p[I]...);
    while (simcuda_next()) K(std::get<I>(a)...);
  }
  static void run(void **p) { call(p, std::index_sequence_for<A...>{}); }
};
#define SIMCUDA_KERNEL(k)                                                                 \
  extern "C" __attribute__((visibility("default"))) const SimKernel simkernel_##k;        \
  const SimKernel simkernel_##k = {#k, SimOf<k>::count, SimOf<k>::sizes, SimOf<k>::pointers, SimOf<k>::run};
