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

// Exponents is a sum of e^(v − top), made in one pass: what is there shrinks as top grows.
template <class A> struct Exponents {
  A top, sum;
  __device__ Exponents() : top(-INFINITY), sum(0) {}
  __device__ void add(A v) {
    A d = v - top;
    if (v == top) sum += 1; // -∞, too
    else if (d > 0) sum = sum * exp(-d) + 1, top = v;
    else sum += exp(d);
  }
  // join makes the team's of what its members have.
  template <class Team> __device__ void join(const Team &team) {
    A own = top;
    top = team.most(own);
    sum = team.sum(sum * exp(own - top)); // a NaN, if there was an ∞ or nothing but -∞
  }
};

// TEAM_KERNELS makes two kernels of a function template F<T>(team, arguments), for either
// kind of team. Go's teams chooses.
#define TEAM_KERNELS(T, NAME, S, F, PARAMS, ...)                    \
  KERNEL NAME##alone##S PARAMS { F<T>(Alone(), __VA_ARGS__); }      \
  KERNEL NAME##together##S PARAMS {                                 \
    __shared__ __align__(8) char s[8 * 256];                        \
    F<T>(Together(s), __VA_ARGS__);                                 \
  }
