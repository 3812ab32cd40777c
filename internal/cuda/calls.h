#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // for dladdr
#endif
#include <cuda.h>
#ifndef SNUG_CUDA_H
#error "this is a toolkit's cuda.h: eval \"$(go run github.com/snug-ml/snug/cmd/snug cuda env)\" comes first"
#endif

// The calls that package cu lacks or makes dear. Each binds its thread to the context first,
// so that any goroutine may make it.
static inline CUresult enter(CUcontext ctx) {
  CUcontext now;
  CUresult err = cuCtxGetCurrent(&now);
  return err || now == ctx ? err : cuCtxSetCurrent(ctx);
}
// snug_version says which version of a library property is of, and where that lies.
#include <dlfcn.h>
#include <stdio.h>
typedef int (*snug_property)(int which, int *value);
static inline void snug_version(snug_property property, char *text, size_t n) {
  int v[3];
  Dl_info at;
  *text = 0;
  if (!property) return;
  for (int i = 0; i < 3; i++)
    if (property(i, &v[i])) return;
  int used = snprintf(text, n, "%d.%d.%d", v[0], v[1], v[2]);
  if (dladdr((void *)property, &at) && at.dli_fname) snprintf(text + used, n - used, ", %s", at.dli_fname);
}

#define DO(call)                  \
  do {                            \
    CUresult err = call;          \
    if (err) return err;          \
  } while (0)

static inline CUresult snug_launch(CUcontext ctx, CUstream s, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, void *params, void *starts, int n) {
  void *at[64];
  if (n > 64) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < n; i++) at[i] = (uint64_t *)params + ((int64_t *)starts)[i];
  DO(enter(ctx));
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, at, NULL);
}

static inline CUresult snug_set(CUcontext ctx, CUstream s, uintptr_t dst, unsigned char v, size_t n) {
  DO(enter(ctx));
  return cuMemsetD8Async(dst, v, n, s);
}

static inline CUresult snug_upload(CUcontext ctx, CUstream s, uintptr_t dst, void *src, size_t n) {
  DO(enter(ctx));
  return cuMemcpyHtoDAsync(dst, src, n, s);
}

static inline CUresult snug_download(CUcontext ctx, CUstream s, void *dst, uintptr_t src, size_t n) {
  DO(enter(ctx));
  DO(cuMemcpyDtoHAsync(dst, src, n, s));
  return cuStreamSynchronize(s);
}

static inline CUresult snug_event(CUcontext ctx, CUevent *ev) {
  DO(enter(ctx));
  return cuEventCreate(ev, CU_EVENT_DISABLE_TIMING);
}

static inline CUresult snug_event_wait(CUcontext ctx, CUevent ev) {
  DO(enter(ctx));
  return cuEventSynchronize(ev);
}

// What after is given from now on comes after what before was given until now.
static inline CUresult snug_order(CUcontext ctx, CUstream before, CUevent ev, CUstream after) {
  DO(enter(ctx));
  DO(cuEventRecord(ev, before));
  return cuStreamWaitEvent(after, ev, 0);
}

// A copy on stream s, and ev when it is done.
static inline CUresult snug_copy(CUcontext ctx, CUstream s, CUevent ev, int out, void *host, uintptr_t device, size_t n) {
  DO(enter(ctx));
  DO(out ? cuMemcpyDtoHAsync(host, device, n, s) : cuMemcpyHtoDAsync(device, host, n, s));
  return cuEventRecord(ev, s);
}

static inline CUresult snug_join(CUcontext ctx, CUstream s, CUevent ev) {
  DO(enter(ctx));
  return cuStreamWaitEvent(s, ev, 0);
}

static inline CUresult snug_sync(CUcontext ctx, CUstream s) {
  DO(enter(ctx));
  return cuStreamSynchronize(s);
}

// A copy between devices: after what src's stream was given, and before what it is given next.
static inline CUresult snug_peer(CUcontext dctx, CUstream ds, CUevent dev, uintptr_t dst, CUcontext sctx, CUstream ss,
                          CUevent sev, uintptr_t src, size_t n) {
  DO(enter(sctx));
  DO(cuEventRecord(sev, ss));
  DO(enter(dctx));
  DO(cuStreamWaitEvent(ds, sev, 0));
  DO(cuMemcpyPeerAsync(dst, dctx, src, sctx, n, ds));
  DO(cuEventRecord(dev, ds));
  DO(enter(sctx));
  return cuStreamWaitEvent(ss, dev, 0);
}

static inline CUresult snug_pin(CUcontext ctx, void **host, size_t n) {
  DO(enter(ctx));
  return cuMemHostAlloc(host, n, CU_MEMHOSTALLOC_PORTABLE);
}

static inline CUresult snug_unpin(CUcontext ctx, void *host) {
  DO(enter(ctx));
  return cuMemFreeHost(host);
}

static inline CUmemAllocationProp granules(int device) {
  CUmemAllocationProp p = {0};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = device;
  return p;
}

static inline CUresult snug_granularity(CUcontext ctx, int device, size_t *bytes) {
  CUmemAllocationProp p = granules(device);
  DO(enter(ctx));
  return cuMemGetAllocationGranularity(bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}

static inline CUresult snug_reserve(CUcontext ctx, CUdeviceptr *at, size_t n, size_t align) {
  DO(enter(ctx));
  return cuMemAddressReserve(at, n, align, 0, 0);
}

static inline CUresult snug_unreserve(CUcontext ctx, uintptr_t at, size_t n) {
  DO(enter(ctx));
  return cuMemAddressFree(at, n);
}

static inline CUresult snug_decommit(CUcontext ctx, uintptr_t at, size_t n, size_t granule) {
  DO(enter(ctx));
  for (size_t i = 0; i < n; i += granule) DO(cuMemUnmap(at + i, granule));
  return CUDA_SUCCESS;
}

// Memory in granules, as only a whole one can be taken away again. All or none.
static inline CUresult snug_commit(CUcontext ctx, int device, uintptr_t at, size_t n, size_t granule) {
  CUmemAllocationProp p = granules(device);
  CUmemAccessDesc access = {p.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult err = enter(ctx);
  size_t done = 0;
  for (; !err && done < n; done += granule) {
    CUmemGenericAllocationHandle h;
    if ((err = cuMemCreate(&h, granule, &p, 0))) break;
    err = cuMemMap(at + done, granule, 0, h, 0);
    cuMemRelease(h); // the mapping keeps the memory
    if (err) break;
  }
  if (!err) err = cuMemSetAccess(at, n, &access, 1);
  if (err && done) snug_decommit(ctx, at, done, granule);
  return err;
}

// What the simulated driver has beside the real one's calls.
static inline void *simulated(const char *call) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? dlsym(driver, call) : NULL;
}

static inline CUresult snug_guard(CUcontext ctx, CUdeviceptr *at, size_t n) {
  CUresult (*guard)(CUdeviceptr *, size_t) = (CUresult(*)(CUdeviceptr *, size_t))simulated("simcuda_guard");
  if (!guard) return CUDA_ERROR_NOT_FOUND;
  DO(enter(ctx));
  return guard(at, n);
}

static inline CUresult snug_unguard(CUcontext ctx, CUstream s, uintptr_t at) {
  CUresult (*unguard)(CUstream, CUdeviceptr) = (CUresult(*)(CUstream, CUdeviceptr))simulated("simcuda_unguard");
  if (!unguard) return CUDA_ERROR_NOT_FOUND;
  DO(enter(ctx));
  return unguard(s, at);
}

static inline CUresult snug_shared(CUcontext ctx, CUfunction f, int bytes) {
  DO(enter(ctx));
  return cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}
