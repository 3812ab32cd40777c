// The steps of optimizers that more than one kernel takes.
#pragma once
#include "rounding.cuh"

// Numbers are what a rule steps with; optim.go has them in its order.
struct Numbers {
  double v[8];
  template <class A> __device__ void to(A (&f)[8]) const {
    for (int k = 0; k < 8; k++) f[k] = A(v[k]);
  }
};

// rate, decay, momentum, 1 − dampening, Nesterov. a is the momentum.
template <class A> __device__ inline void momentumStep(const A (&f)[8], A g, A &w, A &a) {
  A d = g + f[1] * w;
  a = f[2] * a + f[3] * d;
  w -= f[0] * (f[4] != 0 ? d + f[2] * a : a);
}

// rate/(1 − β1ᵗ), decay of the gradient, 1 − β1, β2, 1 − β2, ε, 1/√(1 − β2ᵗ), 1 − rate·decay
// of the weights. a is the mean, b the square and c AMSGrad's largest square; of 0, it
// becomes b.
template <class A> __device__ inline void adamStep(const A (&f)[8], A g, A &w, A &a, A &b, A &c) {
  w *= f[7];
  A d = g + f[1] * w;
  a += f[2] * (d - a);
  b = f[3] * b + f[4] * d * d;
  c = greater(c, b);
  w -= f[0] * a / (sqrt(c) * f[6] + f[5]);
}
