// Devices, contexts, settings, errors.
#include "sim.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <thread>

Settings settings;
std::mutex lock;
std::mt19937_64 random64;

static bool initialised;
static std::set<Context *> contexts;
static std::map<int, Context *> primaries;
static thread_local std::vector<Context *> stack;

void say(const char *format, ...) {
  if (!settings.log) return;
  va_list args;
  va_start(args, format);
  fputs("simcuda: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

static long long number(const char *text) {
  char *end;
  long long n = strtoll(text, &end, 10);
  switch (*end) {
  case 'K': return n << 10;
  case 'M': return n << 20;
  case 'G': return n << 30;
  }
  return n;
}
template <class T> static void read(const char *name, T &v) {
  if (const char *e = getenv(name)) v = number(e);
}
static void readList(const char *name, std::vector<size_t> &v) {
  const char *e = getenv(name);
  if (!e) return;
  v.clear();
  for (; e; e = strchr(e, ',') ? strchr(e, ',') + 1 : nullptr) v.push_back(number(e));
}

static void configure() {
  read("SIMCUDA_DEVICES", settings.devices);
  readList("SIMCUDA_BYTES", settings.bytes);
  readList("SIMCUDA_OTHERS", settings.others);
  read("SIMCUDA_PINNED", settings.pinned);
  read("SIMCUDA_SEED", settings.seed);
  read("SIMCUDA_DRIVER", settings.version);
  settings.threads = std::max(1u, std::thread::hardware_concurrency());
  read("SIMCUDA_THREADS", settings.threads);
  read("SIMCUDA_PROTECT", settings.protect);
  read("SIMCUDA_GROWABLE", settings.growable);
  read("SIMCUDA_PEER", settings.peer);
  read("SIMCUDA_LOG", settings.log);
  if (const char *e = getenv("SIMCUDA_CAPABILITY")) sscanf(e, "%d.%d", &settings.major, &settings.minor);
  if (const char *e = getenv("SIMCUDA_KERNELS")) settings.kernels = e;
  else { // beside this library
    Dl_info self;
    dladdr((void *)configure, &self);
    std::string s = self.dli_fname;
    settings.kernels = s.substr(0, s.rfind('/') + 1) + "kernels.so";
  }
  random64.seed(settings.seed);
}

API cuInit(unsigned flags) {
  std::lock_guard<std::mutex> held(lock);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!initialised) configure();
  initialised = true;
  return settings.devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
API cuDriverGetVersion(int *v) {
  *v = settings.version;
  return CUDA_SUCCESS;
}
API cuDeviceGetCount(int *n) {
  *n = settings.devices;
  return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
static CUresult valid(CUdevice d) {
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  return d >= 0 && d < settings.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
API cuDeviceGet(CUdevice *d, int i) {
  TRY(valid(i));
  *d = i;
  return CUDA_SUCCESS;
}
API cuDeviceGetName(char *s, int n, CUdevice d) {
  TRY(valid(d));
  snprintf(s, n, "simulated CUDA device");
  return CUDA_SUCCESS;
}
static CUresult uuid(char *u, CUdevice d) {
  TRY(valid(d));
  memset(u, 0, 16);
  memcpy(u, "simcuda", 7), u[15] = d;
  return CUDA_SUCCESS;
}
API cuDeviceGetUuid(char *u, CUdevice d) { return uuid(u, d); }
API cuDeviceGetUuid_v2(char *u, CUdevice d) { return uuid(u, d); }
API cuDeviceGetPCIBusId(char *s, int n, CUdevice d) {
  TRY(valid(d));
  snprintf(s, n, "0000:%02x:00.0", d + 1);
  return CUDA_SUCCESS;
}
API cuDeviceTotalMem_v2(size_t *n, CUdevice d) {
  TRY(valid(d));
  *n = settings.bytes[std::min<size_t>(d, settings.bytes.size() - 1)];
  return CUDA_SUCCESS;
}
API cuDeviceComputeCapability(int *major, int *minor, CUdevice d) {
  TRY(valid(d));
  *major = settings.major, *minor = settings.minor;
  return CUDA_SUCCESS;
}
API cuDeviceGetAttribute(int *v, int attribute, CUdevice d) {
  TRY(valid(d));
  static const std::map<int, int> known = {
      {1, 1024}, {2, 1024}, {3, 1024}, {4, 64},                // threads of a block, in each dimension
      {5, 0x7fffffff}, {6, 65535}, {7, 65535},                 // blocks of a grid in each dimension
      {8, 48 << 10}, {9, 64 << 10}, {10, 32}, {11, 0x7fffffff}, // shared, constant, warp, pitch
      {12, 65536}, {13, 1410000}, {14, 512}, {15, 1},          // registers, kHz, alignment, overlap
      {19, 1}, {31, 1}, {34, 0}, {35, 0}, {36, 1215000}, {37, 5120}, {38, 40 << 20}, {39, 2048}, {40, 3}, {41, 1},
      {81, 164 << 10}, {82, 65536}, {97, mostShared}, {106, 32},
  };
  switch (attribute) {
  case 16: *v = settings.processors; break;
  case 33: *v = d + 1; break; // PCI bus
  case 75: *v = settings.major; break;
  case 76: *v = settings.minor; break;
  case 102: *v = settings.growable; break; // virtual memory management
  default: {
    auto it = known.find(attribute);
    *v = it == known.end() ? 0 : it->second;
  }
  }
  return attribute > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b) {
  TRY(valid(a));
  TRY(valid(b));
  *can = a != b && settings.peer;
  return CUDA_SUCCESS;
}
API cuDeviceGetP2PAttribute(int *v, int attribute, CUdevice a, CUdevice b) {
  TRY(valid(a));
  TRY(valid(b));
  *v = (attribute == 2 || attribute == 3) && a != b && settings.peer; // access, atomics
  return CUDA_SUCCESS;
}

// Contexts.

bool alive(Context *c) { return contexts.count(c); }
Context *current() { return stack.empty() ? nullptr : stack.back(); }
CUresult enter(Context **c) {
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  *c = current();
  if (!*c || !alive(*c)) return CUDA_ERROR_INVALID_CONTEXT;
  return (*c)->error;
}
static Context *newContext(int device) {
  Context *c = new Context{};
  c->device = device;
  c->null = newStream(c, true);
  contexts.insert(c);
  return c;
}
static void destroy(Context *c) {
  if (!c->error) drain(c);
  contexts.erase(c);
  dropContext(c);
  dropModules(c);
  freeContextMemory(c);
}

API cuCtxCreate_v2(Context **c, unsigned, CUdevice d) {
  std::lock_guard<std::mutex> held(lock);
  TRY(valid(d));
  stack.push_back(*c = newContext(d));
  return CUDA_SUCCESS;
}
API cuCtxDestroy_v2(Context *c) {
  std::lock_guard<std::mutex> held(lock);
  if (!alive(c) || c->primary) return CUDA_ERROR_INVALID_CONTEXT;
  destroy(c);
  if (current() == c) stack.pop_back();
  return CUDA_SUCCESS;
}
API cuCtxSetCurrent(Context *c) {
  std::lock_guard<std::mutex> held(lock);
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (c && !alive(c)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!stack.empty()) stack.pop_back();
  if (c) stack.push_back(c);
  return CUDA_SUCCESS;
}
API cuCtxGetCurrent(Context **c) {
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  *c = current();
  return CUDA_SUCCESS;
}
API cuCtxPushCurrent_v2(Context *c) {
  std::lock_guard<std::mutex> held(lock);
  if (!alive(c)) return CUDA_ERROR_INVALID_CONTEXT;
  stack.push_back(c);
  return CUDA_SUCCESS;
}
API cuCtxPopCurrent_v2(Context **c) {
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (c) *c = current();
  stack.pop_back();
  return CUDA_SUCCESS;
}
API cuCtxGetDevice(CUdevice *d) {
  Context *c = current();
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  *d = c->device;
  return CUDA_SUCCESS;
}
API cuCtxGetApiVersion(Context *, unsigned *v) {
  *v = 3020;
  return CUDA_SUCCESS;
}
API cuCtxGetFlags(unsigned *f) {
  *f = 0;
  return CUDA_SUCCESS;
}
API cuCtxSynchronize() {
  ENTER;
  drain(ctx);
  return ctx->error;
}
API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0, *greatest = -5;
  return CUDA_SUCCESS;
}
API cuCtxSetLimit(int, size_t) {
  ENTER;
  return CUDA_SUCCESS;
}
API cuCtxSetCacheConfig(int) {
  ENTER;
  return CUDA_SUCCESS;
}
API cuCtxEnablePeerAccess(Context *peer, unsigned flags) {
  ENTER;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(peer) || peer == ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!settings.peer || peer->device == ctx->device) return CUDA_ERROR_INVALID_DEVICE;
  return ctx->peers.insert(peer->device).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
API cuCtxDisablePeerAccess(Context *peer) {
  ENTER;
  if (!alive(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  return ctx->peers.erase(peer->device) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

API cuDevicePrimaryCtxRetain(Context **c, CUdevice d) {
  std::lock_guard<std::mutex> held(lock);
  TRY(valid(d));
  Context *&p = primaries[d];
  if (!p) p = newContext(d), p->primary = true;
  p->retained++;
  *c = p;
  return CUDA_SUCCESS;
}
static CUresult reset(CUdevice d) {
  Context *&p = primaries[d];
  if (p) destroy(p);
  p = nullptr;
  return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  std::lock_guard<std::mutex> held(lock);
  TRY(valid(d));
  Context *p = primaries[d];
  if (!p) return CUDA_ERROR_INVALID_CONTEXT;
  return --p->retained ? CUDA_SUCCESS : reset(d);
}
API cuDevicePrimaryCtxReset_v2(CUdevice d) {
  std::lock_guard<std::mutex> held(lock);
  TRY(valid(d));
  return reset(d);
}
API cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned) { return valid(d); }
// The names of drivers before release 450, which later ones have as well.
API cuDevicePrimaryCtxRelease(CUdevice d) { return cuDevicePrimaryCtxRelease_v2(d); }
API cuDevicePrimaryCtxReset(CUdevice d) { return cuDevicePrimaryCtxReset_v2(d); }
API cuDevicePrimaryCtxSetFlags(CUdevice d, unsigned f) { return cuDevicePrimaryCtxSetFlags_v2(d, f); }
API cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active) {
  std::lock_guard<std::mutex> held(lock);
  TRY(valid(d));
  *flags = 0, *active = primaries[d] != nullptr;
  return CUDA_SUCCESS;
}

// Errors.

struct Named { CUresult code; const char *name, *text; };
static const Named errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};
static const Named *named(CUresult code) {
  for (const Named &e : errors)
    if (e.code == code) return &e;
  return nullptr;
}
API cuGetErrorName(CUresult code, const char **s) {
  const Named *e = named(code);
  *s = e ? e->name : nullptr;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuGetErrorString(CUresult code, const char **s) {
  const Named *e = named(code);
  *s = e ? e->text : nullptr;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
