// The 16-bit types of the libraries' stand-ins.
#pragma once
#include <cstdint>
#include <cstring>

inline float bitsOf(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
inline uint32_t bitsOf(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }

struct Bfloat16 {
  uint16_t v;
  operator float() const { return bitsOf((uint32_t)v << 16); }
  explicit Bfloat16(float f) {
    uint32_t u = bitsOf(f);
    v = f != f ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
  }
};
typedef _Float16 Float16;
