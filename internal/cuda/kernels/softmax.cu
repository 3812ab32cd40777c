// Softmax and its logarithm along lanes of n elements, inner apart.
#include "team.cuh"

namespace {

// forward is e^(x − top)/Σ or, with logs, x − top − ln Σ.
template <class T, class Team> __device__ void forward(const Team &team, i64 lanes, i64 n, i64 inner, int logs, const T *x, T *y) {
  typedef Acc<T> A;
  for (i64 lane = team.first; lane < lanes; lane += team.step) {
    i64 at = lane / inner * n * inner + lane % inner;
    Exponents<A> e;
    for (i64 j = team.member; j < n; j += team.members) e.add(load(x + at + j * inner));
    e.join(team);
    A shift = logs ? e.top + log(e.sum) : e.top, by = 1 / e.sum;
    for (i64 j = team.member; j < n; j += team.members) {
      A v = load(x + at + j * inner) - shift;
      store(y + at + j * inner, logs ? v : exp(v) * by);
    }
  }
}

// backward is y·(dy − Σ y·dy) or, with logs, dy − e^y·Σ dy.
template <class T, class Team> __device__ void backward(const Team &team, i64 lanes, i64 n, i64 inner, int logs, const T *y, const T *dy, T *dx) {
  typedef Acc<T> A;
  for (i64 lane = team.first; lane < lanes; lane += team.step) {
    i64 at = lane / inner * n * inner + lane % inner;
    A sum = 0;
    for (i64 j = team.member; j < n; j += team.members) {
      A d = load(dy + at + j * inner);
      sum += logs ? d : d * load(y + at + j * inner);
    }
    sum = team.sum(sum);
    for (i64 j = team.member; j < n; j += team.members) {
      A v = load(y + at + j * inner), d = load(dy + at + j * inner);
      store(dx + at + j * inner, logs ? d - exp(v) * sum : v * (d - sum));
    }
  }
}

} // namespace

#define SOFTMAX(T, S)                                                                                                         \
  TEAM_KERNELS(T, softmax, S, forward, (i64 lanes, i64 n, i64 inner, int logs, const T *x, T *y), lanes, n, inner, logs, x, y) \
  TEAM_KERNELS(T, softmaxback, S, backward, (i64 lanes, i64 n, i64 inner, int logs, const T *y, const T *dy, T *dx), lanes, n, inner, logs, y, dy, dx)
FLOATS(SOFTMAX)
