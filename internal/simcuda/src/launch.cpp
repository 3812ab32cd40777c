// Modules and kernels. Kernels are looked up by name in kernels.so; the image gives only
// the names that it has.
#include "sim.h"
#include "block.h"
#include "enqueue.h"
#include "simcuda.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <thread>

// Faults. What runs guarded lands here when it touches what it must not.

static thread_local sigjmp_buf *landing;
static thread_local int fault; // the signal
static thread_local CUdeviceptr faultAt;
static struct sigaction oldSegv, oldBus, oldFpe;

static void onFault(int sig, siginfo_t *info, void *context) {
  if (landing) {
    if (sig == SIGSEGV && touch((CUdeviceptr)info->si_addr)) return;
    fault = sig;
    faultAt = info->si_code > 0 && info->si_code != SI_KERNEL ? (CUdeviceptr)info->si_addr : 0;
    siglongjmp(*landing, 1);
  }
  if (placeOf((CUdeviceptr)info->si_addr).device >= 0)
    fprintf(stderr, "simcuda: the host reads or writes device memory at %p\n", info->si_addr);
  const struct sigaction &old = sig == SIGSEGV ? oldSegv : sig == SIGBUS ? oldBus : oldFpe;
  if (old.sa_flags & SA_SIGINFO) old.sa_sigaction(sig, info, context);
  else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) old.sa_handler(sig);
  else signal(sig, SIG_DFL); // happens again
}

static void watch() {
  static bool done;
  if (done) return;
  done = true;
  for (auto [sig, old] : {std::make_pair(SIGSEGV, &oldSegv), {SIGBUS, &oldBus}, {SIGFPE, &oldFpe}}) {
    sigaction(sig, nullptr, old);
    struct sigaction mine = *old;
    mine.sa_sigaction = onFault;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK | (old->sa_flags & SA_RESTART);
    sigaction(sig, &mine, nullptr);
  }
}

static CUresult faulted(const char *what, const char *where) {
  if (fault == SIGFPE) {
    fprintf(stderr, "simcuda: %s%s: integer division by zero\n", what, where);
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  fprintf(stderr, "simcuda: %s%s: illegal address %s\n", what, where,
          faultAt ? describe(faultAt).c_str() : "(misaligned, or far from any)");
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult guarded(const std::function<void()> &fn, const char *what) {
  watch();
  sigjmp_buf here;
  if (sigsetjmp(here, 1)) {
    landing = nullptr;
    return faulted(what, "");
  }
  landing = &here;
  fn();
  landing = nullptr;
  return CUDA_SUCCESS;
}

// Modules.

struct Module {
  Context *ctx;
  std::string image; // PTX, or empty
};
struct Function {
  Module *module;
  const SimKernel *kernel;
  unsigned shared = 48 << 10; // at most so many bytes of dynamic shared memory
};
static std::set<Module *> modules;
static std::map<std::pair<Module *, std::string>, Function *> functions;

static struct {
  void *handle;
  decltype(&simcuda_blocks) blocks;
  decltype(&simcuda_abandon) abandon;
} kernels;

static CUresult loadKernels() {
  if (kernels.handle) return CUDA_SUCCESS;
  void *h = dlopen(settings.kernels.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!h) {
    fprintf(stderr, "simcuda: no kernels: %s\n", dlerror());
    return CUDA_ERROR_FILE_NOT_FOUND;
  }
  kernels = {h, (decltype(&simcuda_blocks))dlsym(h, "simcuda_blocks"), (decltype(&simcuda_abandon))dlsym(h, "simcuda_abandon")};
  return CUDA_SUCCESS;
}

void dropModules(Context *c) {
  for (auto it = functions.begin(); it != functions.end();)
    if (it->first.first->ctx == c) it = functions.erase(it);
    else ++it;
  for (auto it = modules.begin(); it != modules.end();)
    if ((*it)->ctx == c) it = modules.erase(it);
    else ++it;
}

API cuModuleLoadData(Module **m, const void *image) {
  ENTER;
  TRY(loadKernels());
  const char *text = (const char *)image;
  modules.insert(*m = new Module{ctx, strstr(text, ".version") ? text : ""});
  return CUDA_SUCCESS;
}
API cuModuleLoadDataEx(Module **m, const void *image, unsigned, int *, void **) { return cuModuleLoadData(m, image); }
API cuModuleUnload(Module *m) {
  ENTER;
  if (!modules.erase(m)) return CUDA_ERROR_INVALID_HANDLE;
  for (auto it = functions.begin(); it != functions.end();)
    if (it->first.first == m) it = functions.erase(it);
    else ++it;
  delete m;
  return CUDA_SUCCESS;
}
API cuModuleGetFunction(Function **f, Module *m, const char *name) {
  ENTER;
  if (!modules.count(m)) return CUDA_ERROR_INVALID_HANDLE;
  Function *&known = functions[{m, name}];
  if (!known) {
    auto k = (const SimKernel *)dlsym(kernels.handle, ("simkernel_" + std::string(name)).c_str());
    bool in = m->image.empty() || m->image.find(".entry " + std::string(name) + "(") != std::string::npos;
    if (!k || !in) {
      functions.erase({m, name});
      return CUDA_ERROR_NOT_FOUND;
    }
    known = new Function{m, k};
  }
  *f = known;
  return CUDA_SUCCESS;
}
API cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, Module *, const char *) { return CUDA_ERROR_NOT_FOUND; }
API cuFuncGetAttribute(int *v, int attribute, Function *) {
  *v = attribute == 0 ? 1024 : 0; // the most threads of a block
  return CUDA_SUCCESS;
}
API cuFuncSetAttribute(Function *f, int attribute, int v) {
  ENTER;
  if (attribute != 8) return CUDA_SUCCESS;
  if (v < 0 || v > mostShared) return CUDA_ERROR_INVALID_VALUE;
  f->shared = v;
  return CUDA_SUCCESS;
}
API cuFuncSetCacheConfig(Function *, int) { return CUDA_SUCCESS; }

// Running.

struct Grid {
  const SimKernel *kernel;
  SimDim grid, block;
  unsigned shared;
  void **params;
  size_t blocks, each; // each: so many at a time
  bool down;
  std::atomic<size_t> next{0};
  std::atomic<int> error{0};
};

// work runs blocks until there are no more. The caller may be a thread of Go's, whose
// signals land on a stack of their own.
static void work(Grid &g) {
  sigjmp_buf here;
  if (sigsetjmp(here, 1)) {
    landing = nullptr;
    kernels.abandon();
    g.error = faulted("kernel ", g.kernel->name);
    return;
  }
  landing = &here;
  for (size_t lo; !g.error && (lo = g.next.fetch_add(g.each)) < g.blocks;)
    if (kernels.blocks(g.kernel, g.grid, g.block, lo, std::min(lo + g.each, g.blocks), g.shared, g.down, g.params)) {
      fprintf(stderr, "simcuda: kernel %s: a barrier was reached by some threads of a block only\n", g.kernel->name);
      g.error = CUDA_ERROR_LAUNCH_FAILED;
    }
  landing = nullptr;
}

// Workers help with grids of many threads. They are never told to end, so what they wait
// for must outlive the process's exit.
static struct Pool {
  std::mutex mu;
  std::condition_variable come, gone;
  Grid *grid = nullptr;
  unsigned long turn = 0;
  unsigned busy = 0, started = 0;
} &pool = *new Pool;

static void worker() {
  sigset_t all;
  sigfillset(&all);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, s);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  stack_t alt{};
  alt.ss_size = 64 << 10, alt.ss_sp = malloc(alt.ss_size);
  sigaltstack(&alt, nullptr);
  std::unique_lock<std::mutex> l(pool.mu);
  for (unsigned long seen = 0;;) {
    pool.come.wait(l, [&] { return pool.grid && pool.turn != seen; });
    seen = pool.turn;
    Grid *g = pool.grid;
    pool.busy++;
    l.unlock();
    work(*g);
    l.lock();
    if (--pool.busy == 0) pool.gone.notify_one();
  }
}

static CUresult run(const SimKernel *k, SimDim grid, SimDim block, unsigned shared, std::vector<std::vector<char>> args) {
  watch();
  std::vector<void *> params;
  for (auto &a : args) params.push_back(a.data());
  Grid g{k, grid, block, shared, params.data(), (size_t)grid.x * grid.y * grid.z};
  size_t threads = g.blocks * block.x * block.y * block.z;
  g.down = random64() & 1;
  g.each = std::max<size_t>(1, g.blocks / (settings.threads * 8));
  bool help = settings.threads > 1 && g.blocks > 1 && threads >= 4096;
  if (help) {
    std::lock_guard<std::mutex> l(pool.mu);
    for (; pool.started + 1 < settings.threads; pool.started++) std::thread(worker).detach();
    pool.grid = &g, pool.turn++;
    pool.come.notify_all();
  }
  work(g);
  if (help) {
    std::unique_lock<std::mutex> l(pool.mu);
    pool.grid = nullptr;
    pool.gone.wait(l, [] { return pool.busy == 0; });
  }
  return g.error;
}

API cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *handle, void **params, void **extra) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  auto known = f ? functions.find({f->module, f->kernel->name}) : functions.end();
  if (known == functions.end() || f->module->ctx != ctx) return CUDA_ERROR_INVALID_HANDLE;
  const SimKernel *k = f->kernel;
  if (!gx || !gy || !gz || !bx || !by || !bz || gx > 0x7fffffff || gy > 65535 || gz > 65535 || bx > 1024 || by > 1024 ||
      bz > 64 || (size_t)bx * by * bz > 1024 || shared > f->shared || extra || (k->count && !params)) {
    fprintf(stderr, "simcuda: kernel %s: invalid launch: grid %u %u %u, block %u %u %u, %u bytes of shared memory\n", k->name, gx, gy, gz, bx, by, bz, shared);
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<std::vector<char>> args;
  for (unsigned i = 0; i < k->count; i++) args.emplace_back((char *)params[i], (char *)params[i] + k->sizes[i]);
  push(s, [=] {
    say("%s: grid %u %u %u, block %u %u %u", k->name, gx, gy, gz, bx, by, bz);
    for (unsigned i = 0; i < k->count; i++) {
      CUdeviceptr p = 0;
      if (k->pointers[i]) memcpy(&p, args[i].data(), sizeof p);
      if (!p) continue;
      touch(p);
      Place at = placeOf(p);
      if (at.found && (at.pinned || (at.access && (at.device == ctx->device || ctx->peers.count(at.device))))) continue;
      const char *why = at.found && at.access ? "peer access is not enabled: " : "";
      fprintf(stderr, "simcuda: kernel %s: parameter %u is an illegal address for device %d: %s%s\n", k->name, i, ctx->device, why, describe(p).c_str());
      return (CUresult)CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return run(k, {gx, gy, gz}, {bx, by, bz}, shared, args);
  });
  return CUDA_SUCCESS;
}

API simcuda_enqueue(void *handle, const char *what, void (*fn)(void *), void *arg) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  std::string name = what;
  push(s, [=] {
    say("%s", name.c_str());
    return guarded([=] { fn(arg); }, name.c_str());
  });
  return CUDA_SUCCESS;
}
