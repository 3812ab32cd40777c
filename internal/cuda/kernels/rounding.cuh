#pragma once
#include "four.cuh"
#include "philox.cuh"

// roundB16 rounds x to one of its two neighbours, by 16 random bits: up, away from 0, with
// the part of the way there that x has gone (Gupta et al., 2015). A bfloat16, an infinity
// and a NaN stay what they are.
__device__ inline b16 roundB16(float x, unsigned bits) {
  b16 r;
  if (x != x) store(&r, x);
  else r.v = (unsigned short)((floatToBits(x) + (bits & 0xffff)) >> 16);
  return r;
}

// roundFew writes what a step has computed. bfloat16 is rounded stochastically where the
// key's tick is not 0: element i of an operand has the i%8-th 16 bits of block i/8 under
// the operand's number.
template <class A, class T, int N> __device__ inline void roundFew(Key, int, T *p, const A (&v)[N], i64 i) {
  storeFew(p, v, i);
}
template <class A, int N> __device__ inline void roundFew(Key key, int operand, b16 *p, const A (&v)[N], i64 i) {
  if (key.tick == 0) return storeFew(p, v, i);
  Bits bits = philox(Key{key.seed, key.tick, (u64)operand}, i / 8);
  u64 half = i % 8 < 4 ? bits.v[0] | (u64)bits.v[1] << 32 : bits.v[2] | (u64)bits.v[3] << 32;
  Pack<b16, N> x;
  for (int k = 0; k < N; k++) x.v[k] = roundB16(v[k], (unsigned)(half >> ((i + k) % 4 * 16)));
  *(Pack<b16, N> *)(p + i) = x;
}
