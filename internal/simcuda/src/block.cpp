// How a block of threads runs. Linked into libcuda.so.1: that has few thread-local variables,
// which are quick to reach, while kernels.so has all kernels' shared memory.
#include "simcuda.h"
#include "block.h"
#include <algorithm>
#include <memory>
#include <sys/mman.h>
#include <vector>
#ifndef __x86_64__
#include <ucontext.h>
#endif

__thread SimThread simcuda_thread;

namespace {

const size_t stackBytes = 128 << 10, guardBytes = 4096;

#ifdef __x86_64__
// switchStack saves what a call must preserve on this stack, and goes on on another.
extern "C" void simcuda_switch(void **from, void *to);
asm(R"(
.text
.type simcuda_switch,@function
simcuda_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
struct Stack {
  void *sp = nullptr;
  void enter(char *top, void (*fn)()) {
    void **p = (void **)top;
    *--p = nullptr;     // where fn would return to; also aligns its frame
    *--p = (void *)fn;  // where the first switch returns to
    sp = p - 6;         // six registers
  }
  void to(Stack &s) { simcuda_switch(&sp, s.sp); }
};
#else
struct Stack {
  ucontext_t c;
  void enter(char *top, void (*fn)()) {
    getcontext(&c);
    c.uc_stack.ss_sp = top - stackBytes + guardBytes, c.uc_stack.ss_size = stackBytes - guardBytes, c.uc_link = nullptr;
    makecontext(&c, fn, 0);
  }
  void to(Stack &s) { swapcontext(&c, &s.c); }
};
#endif

void fiberMain();

struct Fiber {
  Stack stack;
  char *mem;
  Fiber() {
    mem = (char *)mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) abort();
    mprotect(mem, guardBytes, PROT_NONE);
    reset();
  }
  ~Fiber() { munmap(mem, stackBytes); }
  void reset() { stack.enter(mem + stackBytes, fiberMain); }
};

// Worker runs one block at a time.
struct Worker {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber *> idle, waiting, round; // waiting at the barrier; released and not yet run
  size_t at = 0;
  Fiber *current = nullptr;
  Stack main;
  const SimKernel *kernel;
  void **params;
  std::vector<unsigned char> shared;

  // next is who runs when the current fiber waits or is done; null: the round is over.
  Fiber *next() {
    if (simcuda_thread.next < simcuda_thread.count) {
      if (idle.empty()) {
        fibers.push_back(std::make_unique<Fiber>());
        idle.push_back(fibers.back().get());
      }
      Fiber *f = idle.back();
      idle.pop_back();
      return f;
    }
    return at < round.size() ? round[at++] : nullptr;
  }
  void go(Stack &from, Fiber *f) {
    current = f;
    from.to(f ? f->stack : main);
  }
  bool block() {
    round.clear(), waiting.clear(), at = 0;
    go(main, next());
    while (!waiting.empty()) {
      if (waiting.size() != simcuda_thread.count) return false;
      std::reverse(waiting.begin(), waiting.end());
      std::swap(round, waiting);
      waiting.clear(), at = 0;
      go(main, next());
    }
    return true;
  }
  void abandon() {
    idle.clear();
    for (auto &f : fibers) f->reset(), idle.push_back(f.get());
  }
};

// self is this thread's. A pointer to it is faster to find.
Worker &self() {
  static thread_local Worker worker;
  if (!simcuda_thread.worker) simcuda_thread.worker = &worker;
  return *(Worker *)simcuda_thread.worker;
}

void fiberMain() {
  Worker &w = self();
  for (;;) {
    w.kernel->run(w.params);
    Fiber *f = w.current;
    w.idle.push_back(f);
    Fiber *n = w.next();
    if (n != f) w.go(f->stack, n);
  }
}

} // namespace

void simcuda_sync() {
  Worker &w = self();
  Fiber *f = w.current;
  uint3 t = threadIdx;
  w.waiting.push_back(f);
  w.go(f->stack, w.next());
  threadIdx = t;
}

extern "C" __attribute__((visibility("default"))) int simcuda_blocks(const SimKernel *k, SimDim grid, SimDim block, size_t lo, size_t hi, unsigned shared, bool down, void **params) {
  Worker &w = self();
  SimThread &s = simcuda_thread;
  w.kernel = k, w.params = params;
  gridDim = {grid.x, grid.y, grid.z}, blockDim = {block.x, block.y, block.z};
  s.count = block.x * block.y * block.z, s.down = down;
  w.shared.resize(shared + 64);
  s.shared = (unsigned char *)(((uintptr_t)w.shared.data() + 63) & ~(uintptr_t)63);
  for (size_t b = lo; b < hi; b++) {
    blockIdx = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
    memset(s.shared, 0xff, shared);
    s.next = 0;
    if (!w.block()) {
      w.abandon();
      return 1;
    }
  }
  return 0;
}

extern "C" __attribute__((visibility("default"))) void simcuda_abandon() { self().abandon(); }
