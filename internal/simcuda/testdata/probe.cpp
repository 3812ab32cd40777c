// Tests of the driver stand-in: probe CASE. Seeds, limits and numbers of devices come from
// the environment.
#include "../src/sim.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

extern "C" {
typedef struct Event *CUevent;
typedef struct Module *CUmodule;
typedef struct Function *CUfunction;
typedef void *CUstream;
CUresult cuInit(unsigned);
CUresult cuCtxCreate_v2(Context **, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(Context *);
CUresult cuCtxSetCurrent(Context *);
CUresult cuCtxSynchronize();
CUresult cuCtxEnablePeerAccess(Context *, unsigned);
CUresult cuDevicePrimaryCtxRetain(Context **, CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuEventCreate(CUevent *, unsigned);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuMemFreeHost(void *);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyPeerAsync(CUdeviceptr, Context *, CUdeviceptr, Context *, size_t, CUstream);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
CUresult cuMemGetAllocationGranularity(size_t *, const void *, int);
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult simcuda_guard(CUdeviceptr *, size_t);
CUresult simcuda_unguard(CUstream, CUdeviceptr);
CUresult cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(void **, size_t, const void *, unsigned long long);
CUresult cuMemRelease(void *);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, void *, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, size_t);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const void *, size_t);
}

static void want(const char *what, long long got, long long wanted) {
  if (got == wanted) return;
  fprintf(stderr, "%s: got %lld, want %lld\n", what, got, wanted);
  exit(1);
}
#define OK(call) want(#call, call, CUDA_SUCCESS)

static CUmodule module;
template <class... A> static CUresult launch(const char *name, unsigned grid, unsigned block, unsigned shared, CUstream s, A... args) {
  CUfunction f;
  OK(cuModuleGetFunction(&f, module, name));
  void *params[] = {&args...};
  return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, s, params, nullptr);
}
static Context *begin(int device = 0) {
  Context *c;
  OK(cuInit(0));
  OK(cuCtxCreate_v2(&c, 0, device));
  OK(cuModuleLoadData(&module, ""));
  return c;
}
static CUdeviceptr alloc(size_t n) {
  CUdeviceptr p;
  OK(cuMemAlloc_v2(&p, n));
  return p;
}
static CUstream stream() {
  CUstream s;
  OK(cuStreamCreate(&s, 1));
  return s;
}
static std::vector<float> read(CUdeviceptr p, size_t n) {
  std::vector<float> v(n);
  OK(cuMemcpyDtoH_v2(v.data(), p, n * 4));
  return v;
}
static CUdeviceptr write(const std::vector<float> &v) {
  CUdeviceptr p = alloc(v.size() * 4);
  OK(cuMemcpyHtoD_v2(p, v.data(), v.size() * 4));
  return p;
}
static const long long n = 1000;
static std::vector<float> ramp() {
  std::vector<float> v(n);
  for (int i = 0; i < n; i++) v[i] = i;
  return v;
}

static void kernels() {
  begin();
  CUdeviceptr x = write(ramp()), y = write(std::vector<float>(n, 1));
  OK(launch("axpy", 4, 256, 0, nullptr, n, 2.0f, x, y));
  want("y[999]", read(y, n)[999], 1999);
  OK(launch("block_sum", 4, 256, 0, nullptr, n, x, y));
  float sum = 0;
  for (float f : read(y, 4)) sum += f;
  want("sum", sum, 499500);
  OK(launch("turn", 10, 100, 400, nullptr, x, 1));
  want("turned", read(x, n)[900], 999);
  CUfunction f;
  CUdeviceptr o = alloc(4 * 5040);
  OK(cuModuleGetFunction(&f, module, "place"));
  void *params[] = {&o};
  OK(cuLaunchKernel(f, 2, 3, 4, 5, 6, 7, 0, nullptr, params, nullptr));
  std::vector<unsigned> v(5040);
  OK(cuMemcpyDtoH_v2(v.data(), o, 4 * 5040));
  for (int i = 0; i < 5040; i++) want("index", v[i], i);
  want("no such kernel", cuModuleGetFunction(&f, module, "none"), CUDA_ERROR_NOT_FOUND);
  want("2048 threads", launch("at", 1, 2048, 0, nullptr, o, 0ll), CUDA_ERROR_INVALID_VALUE);
  OK(cuModuleLoadData(&module, ".version 6.0\n.visible .entry at("));
  OK(cuModuleGetFunction(&f, module, "at"));
  want("not in the image", cuModuleGetFunction(&f, module, "axpy"), CUDA_ERROR_NOT_FOUND);
}

static void barrier() { // exits with 3 where the lack of one shows
  begin();
  CUdeviceptr x = write(ramp());
  OK(launch("turn", 10, 100, 400, nullptr, x, 0));
  auto v = read(x, n);
  for (int i = 0; i < n; i++)
    if (v[i] != i / 100 * 100 + 99 - i % 100) exit(3);
}

static void diverge() {
  begin();
  OK(launch("diverge", 1, 32, 0, nullptr, alloc(128)));
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

static CUdeviceptr race(bool event) {
  CUstream a = stream(), b = stream();
  CUdeviceptr x = alloc(n * 4), y = write(std::vector<float>(n, 0));
  auto v = ramp();
  void *pinned;
  OK(cuMemHostAlloc(&pinned, n * 4, 0));
  memcpy(pinned, v.data(), n * 4);
  OK(cuMemcpyHtoDAsync_v2(x, pinned, n * 4, a));
  if (event) {
    CUevent e;
    OK(cuEventCreate(&e, 2));
    OK(cuEventRecord(e, a));
    OK(cuStreamWaitEvent(b, e, 0));
  }
  OK(launch("axpy", 4, 256, 0, b, n, 1.0f, x, y));
  OK(cuStreamSynchronize(b));
  return y;
}
static void events() {
  begin();
  want("y", read(race(true), n)[999], 999);
}
static void missing() { // exits with 3 where the lack of the event shows
  begin();
  if (read(race(false), n)[999] != 999) exit(3);
}
static void pinned() { // likewise: the buffer is written again too early
  begin();
  CUstream a = stream();
  CUdeviceptr x = alloc(n * 4);
  float *p;
  OK(cuMemHostAlloc((void **)&p, n * 4, 0));
  for (int i = 0; i < n; i++) p[i] = 1;
  OK(cuMemcpyHtoDAsync_v2(x, p, n * 4, a));
  p[0] = 2;
  OK(cuStreamSynchronize(a));
  if (read(x, 1)[0] != 1) exit(3);
}
static void query() {
  begin();
  CUstream a = stream();
  CUdeviceptr x = alloc(n * 4);
  CUevent e;
  OK(cuEventCreate(&e, 2));
  for (int i = 0; i < 50; i++) OK(cuMemsetD8Async(x, 0, n * 4, a));
  OK(cuEventRecord(e, a));
  want("at once", cuEventQuery(e), CUDA_ERROR_NOT_READY);
  int tries = 0;
  while (cuEventQuery(e) == CUDA_ERROR_NOT_READY) want("tries", tries++ < 1000, 1);
  want("zero", read(x, 1)[0], 0);
}

static void poison() {
  begin();
  for (float f : read(alloc(5000), 1250)) want("a NaN", f != f, 1);
}
static void bounds() {
  Context *c = begin();
  OK(launch("at", 1, 1, 0, nullptr, alloc(512), 127ll));
  OK(cuCtxSynchronize());
  CUdeviceptr p = alloc(512);
  CUfunction f;
  OK(cuModuleGetFunction(&f, module, "at"));
  long long i = 128;
  void *params[] = {&p, &i};
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  want("launch", cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  want("alloc", cuMemAlloc_v2(&p, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(cuCtxDestroy_v2(c));
  begin(); // a new context works
  OK(launch("at", 1, 1, 0, nullptr, alloc(512), 0ll));
  OK(cuCtxSynchronize());
}
static void guarded() {
  begin();
  CUstream s = stream();
  CUdeviceptr p, table = alloc(8);
  OK(simcuda_guard(&p, 100));
  want("aligned", p % 16, 0);
  OK(cuMemcpyHtoD_v2(table, &p, 8));
  OK(launch("at", 1, 1, 0, s, p, 24ll));
  OK(launch("deep", 1, 1, 0, s, table, 0));
  OK(simcuda_unguard(s, p)); // after these
  OK(cuStreamSynchronize(s));
  OK(simcuda_guard(&p, 100));
  OK(launch("at", 1, 1, 0, s, p, 28ll));
  want("beyond", cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}
static void unguarded() {
  begin();
  CUstream s = stream();
  CUdeviceptr p, table = alloc(8);
  OK(simcuda_guard(&p, 100));
  OK(cuMemcpyHtoD_v2(table, &p, 8));
  OK(simcuda_unguard(s, p));
  OK(launch("deep", 1, 1, 0, s, table, 0));
  want("later", cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}
static void freed() {
  begin();
  CUdeviceptr p = alloc(8), x = alloc(512);
  OK(cuMemcpyHtoD_v2(p, &x, 8));
  OK(launch("deep", 1, 1, 0, nullptr, p, 0));
  OK(cuMemFree_v2(x));
  want("free twice", cuMemFree_v2(x), CUDA_ERROR_INVALID_VALUE);
  want("copy", cuMemcpyHtoD_v2(x, &p, 8), CUDA_ERROR_INVALID_VALUE);
  OK(launch("deep", 1, 1, 0, nullptr, p, 0));
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
static void freedParameter() {
  begin();
  CUdeviceptr x = alloc(512);
  OK(cuMemFree_v2(x));
  OK(launch("at", 1, 1, 0, nullptr, x, 0ll));
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
static void hostParameter() {
  begin();
  float f;
  OK(launch("at", 1, 1, 0, nullptr, &f, 0ll));
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
static void misaligned() {
  begin();
  OK(launch("vectors", 1, 1, 0, nullptr, alloc(64) + 4));
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
static void null() {
  begin();
  OK(launch("at", 1, 1, 0, nullptr, (CUdeviceptr)0, 0ll));
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
static void host() { // dies: the host cannot read device memory
  begin();
  CUdeviceptr x = write(ramp());
  read(x, n);
  printf("%f\n", *(float *)x);
}

static void limits() { // two devices, of 1 MiB and 2 MiB, the second one's half taken by others
  begin();
  CUdeviceptr p, q;
  size_t avail, all;
  OK(cuMemAlloc_v2(&p, 700 << 10));
  want("too much", cuMemAlloc_v2(&q, 700 << 10), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAlloc_v2(&q, 300 << 10));
  OK(cuMemGetInfo_v2(&avail, &all));
  want("all", all, 1 << 20);
  want("free", avail, 24 << 10);
  OK(cuMemFree_v2(p));
  OK(cuMemAlloc_v2(&p, 700 << 10));
  Context *second;
  OK(cuDevicePrimaryCtxRetain(&second, 1));
  OK(cuCtxSetCurrent(second));
  OK(cuMemGetInfo_v2(&avail, &all));
  want("all", all, 2 << 20);
  want("free", avail, 1 << 20);
  want("too much", cuMemAlloc_v2(&q, (1 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

static void peers() { // two devices
  Context *a = begin(0), *b = begin(1);
  auto v = ramp();
  OK(cuCtxSetCurrent(a));
  OK(cuModuleLoadData(&module, ""));
  CUdeviceptr x = write(v);
  OK(cuCtxSetCurrent(b));
  CUdeviceptr y = alloc(n * 4);
  CUstream s = stream();
  OK(cuMemcpyPeerAsync(y, b, x, a, n * 4, s));
  OK(cuStreamSynchronize(s));
  want("copied", read(y, n)[999], 999);
  OK(cuCtxSetCurrent(a));
  OK(cuCtxEnablePeerAccess(b, 0));
  OK(launch("at", 1, 1, 0, nullptr, y, 5ll));
  OK(cuCtxSynchronize());
  want("written", read(y, n)[5], 1);
  OK(cuCtxSetCurrent(b));
  OK(cuModuleLoadData(&module, ""));
  OK(launch("at", 1, 1, 0, nullptr, x, 5ll)); // not enabled in this direction
  want("synchronize", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void growable() {
  begin();
  struct { int type, handles, where, id; void *w; unsigned char rest[8]; } prop = {1, 0, 1, 0, nullptr, {}};
  struct { int where, id, flags; } access = {1, 0, 3};
  size_t g, avail, all;
  CUdeviceptr p;
  void *h[3];
  OK(cuMemGetAllocationGranularity(&g, &prop, 0));
  OK(cuMemAddressReserve(&p, 8 * g, 0, 0, 0));
  for (int i = 0; i < 2; i++) {
    OK(cuMemCreate(&h[i], g, &prop, 0));
    OK(cuMemMap(p + i * g, g, 0, h[i], 0));
    OK(cuMemRelease(h[i]));
  }
  want("no access yet", cuMemsetD32Async(p, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemSetAccess(p, 2 * g, &access, 1));
  OK(cuMemsetD32Async(p + g - 8, 0x3f800000, 4, nullptr)); // over the border
  for (float f : read(p + g - 8, 4)) want("filled", f, 1);
  want("beyond", cuMemsetD32Async(p + 2 * g - 8, 0, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(p, g));
  OK(cuMemGetInfo_v2(&avail, &all));
  want("used", all - avail, g);
  OK(cuMemCreate(&h[2], 2 * g, &prop, 0));
  want("in the way", cuMemMap(p, 2 * g, 0, h[2], 0), CUDA_ERROR_INVALID_VALUE);
  want("still mapped", cuMemAddressFree(p, 8 * g), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(p + g, g));
  OK(cuMemAddressFree(p, 8 * g));
  OK(cuMemRelease(h[2]));
  OK(cuMemGetInfo_v2(&avail, &all));
  want("used", all - avail, 0);
  want("freed", cuMemsetD32Async(p, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
}

static void contexts() {
  OK(cuInit(0));
  CUdeviceptr p;
  want("no context", cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
  Context *a = begin(), *b;
  CUstream s = stream();
  OK(cuCtxCreate_v2(&b, 0, 0));
  want("stream of another context", cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
  OK(cuCtxDestroy_v2(b));
  want("destroyed", cuCtxSetCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxSetCurrent(a));
  alloc(1 << 20);
  OK(cuCtxDestroy_v2(a));
  begin();
  size_t avail, all;
  OK(cuMemGetInfo_v2(&avail, &all));
  want("free", avail, all);
}

int main(int argc, char **argv) {
  const std::map<std::string, void (*)()> cases = {
      {"kernels", kernels}, {"barrier", barrier}, {"diverge", diverge}, {"events", events}, {"missing", missing},
      {"pinned", pinned}, {"query", query}, {"poison", poison}, {"bounds", bounds}, {"guarded", guarded}, {"unguarded", unguarded}, {"freed", freed},
      {"freedParameter", freedParameter}, {"hostParameter", hostParameter}, {"misaligned", misaligned}, {"null", null},
      {"host", host}, {"limits", limits}, {"peers", peers}, {"growable", growable}, {"contexts", contexts}};
  auto it = cases.find(argc > 1 ? argv[1] : "");
  if (it == cases.end()) return 2;
  it->second();
}
