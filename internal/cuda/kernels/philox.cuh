#pragma once
#include "common.cuh"

typedef unsigned long long u64;

// Key is (seed, tick, draw) of driver.Philox.
struct Key { u64 seed, tick, draw; };

struct Bits { unsigned v[4]; };

// philox gives the same four numbers as driver.Philox.
__device__ inline Bits philox(Key key, u64 block) {
  unsigned c0 = (unsigned)block, c1 = (unsigned)(block >> 32), c2 = (unsigned)key.tick, c3 = (unsigned)key.draw;
  unsigned k0 = (unsigned)key.seed, k1 = (unsigned)(key.seed >> 32);
#pragma unroll 1
  for (int i = 0; i < 10; i++) {
    u64 p = 0xD2511F53ull * c0, q = 0xCD9E8D57ull * c2;
    c0 = (unsigned)(q >> 32) ^ c1 ^ k0, c1 = (unsigned)q;
    c2 = (unsigned)(p >> 32) ^ c3 ^ k1, c3 = (unsigned)p;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Bits{{c0, c1, c2, c3}};
}
