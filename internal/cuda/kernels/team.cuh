// A team works on one row: a thread by itself where rows are short or lie across each
// other, else a block. What it adds up or compares, it does in a fixed order.
#pragma once
#include "common.cuh"

// Rows go to teams by turns: from first on, by step.
struct Alone {
  i64 first, step;
  int member, members;
  __device__ Alone() : first(index()), step(span()), member(0), members(1) {}
  template <class A> __device__ A sum(A v) const { return v; }
  template <class A> __device__ A most(A v) const { return v; }
};

struct Together {
  i64 first, step;
  int member, members;
  void *s; // room for a value of each thread
  __device__ Together(void *s) : first(blockIdx.x), step(gridDim.x), member(threadIdx.x), members(blockDim.x), s(s) {}
  template <class A> __device__ A sum(A v) const { return blockSum(v, (A *)s); }
  template <class A> __device__ A most(A v) const { return blockMax(v, (A *)s); }
};

// TEAM_KERNELS makes two kernels of a function template F<T>(team, arguments), for either
// kind of team. Go's teams chooses.
#define TEAM_KERNELS(T, NAME, S, F, PARAMS, ...)                    \
  KERNEL NAME##alone##S PARAMS { F<T>(Alone(), __VA_ARGS__); }      \
  KERNEL NAME##together##S PARAMS {                                 \
    __shared__ __align__(8) char s[8 * 256];                        \
    F<T>(Together(s), __VA_ARGS__);                                 \
  }
