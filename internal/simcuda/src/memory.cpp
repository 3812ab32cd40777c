// Device memory is memory of this process at addresses of its own, which nothing but
// kernels and copies can reach: while none runs, a Go function that reads it faults.
// Fresh memory is full of ones (a NaN in every type of floats). Behind every allocation
// lies a hole, and an address is not given out twice.
#include "sim.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace {

const size_t page = 4096, granule = 2 << 20, alignment = 512;

size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

struct Handle { // physical memory of cuMemCreate
  int device;
  size_t size;
  bool released = false;
  CUdeviceptr mapped = 0;
};
struct Range { // mapped addresses
  CUdeviceptr at;
  size_t size; // in pages
  CUdeviceptr ptr;
  size_t bytes; // what was asked for, from ptr
  int device;
  Context *owner;         // null for mappings of handles
  Handle *handle = nullptr;
  std::set<int> access; // devices that may use a mapping
  bool open = false;    // this process can reach it now
  bool guarded = false; // not counted
  Range *next = nullptr; // that is open
};
std::map<CUdeviceptr, Range> ranges; // by the first address
std::map<CUdeviceptr, size_t> reservations, pinned, freed;
std::multimap<size_t, CUdeviceptr> unreserved; // by their size, as they can be large
std::set<Handle *> handles;
std::map<int, size_t> used;
size_t pinnedBytes;

// What work touches is opened by then and closed after it, as opening all of it would take
// longer than the work.
int opened;
Range *open;
std::atomic_flag opening = ATOMIC_FLAG_INIT;

// Addresses come from one large piece of the address space.
CUdeviceptr arena, arenaEnd, arenaNext;

CUdeviceptr reserve(size_t size, size_t align) {
  if (!arena) {
    size_t all = 1ull << 45;
    void *p = MAP_FAILED;
    for (; p == MAP_FAILED && all > 1ull << 30; all /= 2)
      p = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return 0;
    arena = arenaNext = (CUdeviceptr)p, arenaEnd = arena + all;
  }
  CUdeviceptr at = up(arenaNext + page, align);
  if (at + size + page > arenaEnd) {
    fprintf(stderr, "simcuda: out of addresses\n");
    return 0;
  }
  arenaNext = at + size;
  return at;
}

bool visible(const Range &r) { return !r.handle || !r.access.empty(); }

void protect(CUdeviceptr at, const Range &r, bool on) { mprotect((void *)at, r.size, on ? PROT_READ | PROT_WRITE : PROT_NONE); }

// Memory that appears, or can be used from now on.
void appear(CUdeviceptr at, const Range &r) {
  if (!settings.protect) protect(at, r, visible(r));
}

// back gives memory to addresses: private copies of a file that is full of ones.
bool back(CUdeviceptr at, size_t size) {
  static int file = -1;
  if (file < 0) {
    file = memfd_create("simcuda", MFD_CLOEXEC);
    std::vector<char> ones(granule, (char)0xff);
    if (file < 0 || write(file, ones.data(), granule) != (ssize_t)granule) return false;
  }
  for (size_t done = 0; done < size; done += granule)
    if (mmap((void *)(at + done), std::min(granule, size - done), PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED) return false;
  return true;
}
void unback(CUdeviceptr at, size_t size) {
  mmap((void *)at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

size_t total(int device) { return settings.bytes[std::min<size_t>(device, settings.bytes.size() - 1)]; }
size_t others(int device) { return settings.others[std::min<size_t>(device, settings.others.size() - 1)]; }
bool take(int device, size_t n) {
  size_t have = total(device), gone = others(device) + used[device];
  if (gone > have || n > have - gone) return false;
  used[device] += n;
  return true;
}

std::map<CUdeviceptr, Range>::iterator rangeAt(CUdeviceptr p) {
  auto it = ranges.upper_bound(p);
  if (it == ranges.begin()) return ranges.end();
  --it;
  return p < it->first + it->second.size ? it : ranges.end();
}

// Memory that goes.
void vanish(CUdeviceptr at, Range &r) {
  unback(at, r.size);
  for (Range **p = &open; *p; p = &(*p)->next)
    if (*p == &r) {
      *p = r.next;
      break;
    }
}

void release(std::map<CUdeviceptr, Range>::iterator it) {
  Range &r = it->second;
  vanish(it->first, r);
  if (!r.guarded) used[r.device] -= up(r.bytes, alignment);
  freed[r.ptr] = r.bytes;
  ranges.erase(it);
}
void drop(Handle *h) {
  if (!h->released || h->mapped) return;
  used[h->device] -= h->size;
  handles.erase(h);
  delete h;
}

} // namespace

void openMemory() { opened++; }
void closeMemory() {
  if (--opened) return;
  for (; open; open = open->next) protect(open->at, *open, false), open->open = false;
}

// touch is called by signal handlers, too, of several threads.
bool touch(CUdeviceptr p) {
  while (opening.test_and_set()) {}
  auto it = rangeAt(p);
  bool ok = it != ranges.end() && settings.protect && opened && visible(it->second);
  if (ok && !it->second.open) { // else another thread was faster
    Range &r = it->second;
    protect(r.at, r, true);
    r.open = true, r.next = open, open = &r;
  }
  opening.clear();
  return ok;
}

Place placeOf(CUdeviceptr p) {
  Place found;
  auto it = rangeAt(p);
  if (it == ranges.end()) it = rangeAt(p - 1); // one past the end
  if (it != ranges.end()) {
    const Range &r = it->second;
    found.found = true, found.device = r.device, found.owner = r.owner, found.base = r.ptr, found.size = r.bytes;
    found.access = !r.handle || r.access.count(current() ? current()->device : r.device);
    return found;
  }
  auto h = pinned.upper_bound(p);
  if (h != pinned.begin() && p <= (--h)->first + h->second)
    found.found = found.pinned = true, found.base = h->first, found.size = h->second;
  return found;
}

bool reaches(CUdeviceptr p, size_t bytes) {
  while (bytes > 0) { // mappings may lie one after the other
    auto it = rangeAt(p);
    CUdeviceptr end;
    if (it != ranges.end()) {
      if (!visible(it->second) || p < it->second.ptr) return false;
      end = it->second.ptr + it->second.bytes;
    } else {
      Place h = placeOf(p);
      if (!h.pinned) return false;
      end = h.base + h.size;
    }
    if (end <= p) return false;
    size_t n = std::min<size_t>(bytes, end - p);
    p += n, bytes -= n;
  }
  return true;
}

std::string describe(CUdeviceptr p) {
  char s[200];
  Place at = placeOf(p);
  auto f = freed.upper_bound(p);
  if (at.found)
    snprintf(s, sizeof s, "%#llx, byte %lld of %zu at %#llx of device %d", p, (long long)(p - at.base), at.size, at.base, at.device);
  else if (f != freed.begin() && p < (--f)->first + f->second)
    snprintf(s, sizeof s, "%#llx, byte %lld of %zu freed at %#llx", p, (long long)(p - f->first), f->second, f->first);
  else if (p >= arena && p < arenaEnd) {
    auto it = ranges.upper_bound(p);
    if (it != ranges.begin() && p - (--it)->second.ptr - it->second.bytes < granule)
      snprintf(s, sizeof s, "%#llx, %lld bytes after the end of %zu at %#llx", p, (long long)(p - it->second.ptr - it->second.bytes), it->second.bytes, it->second.ptr);
    else
      snprintf(s, sizeof s, "%#llx, device memory that was never allocated", p);
  } else
    snprintf(s, sizeof s, "%#llx, not device memory", p);
  return s;
}

void freeContextMemory(Context *c) {
  for (auto it = ranges.begin(); it != ranges.end();) {
    auto next = std::next(it);
    if (it->second.owner == c) release(it);
    it = next;
  }
}

API cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  ENTER;
  if (n == 0) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = up(n, alignment), size = up(n, page);
  if (n > 1ull << 44 || !take(ctx->device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr at = reserve(size, granule);
  if (!at || !back(at, size)) {
    used[ctx->device] -= bytes;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *p = at + size - bytes; // the end of the memory is the end of a page
  Range r{at, size, *p, n, ctx->device, ctx};
  appear(at, ranges.emplace(at, r).first->second);
  say("device %d: %zu bytes at %#llx", ctx->device, n, *p);
  return CUDA_SUCCESS;
}
API cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
API cuMemFree_v2(CUdeviceptr p) {
  ENTER;
  if (!p) return CUDA_SUCCESS;
  auto it = rangeAt(p);
  if (it == ranges.end() || it->second.ptr != p || it->second.handle) return CUDA_ERROR_INVALID_VALUE;
  drainDevice(it->second.device); // the real driver waits, too
  if (ctx->error) return ctx->error;
  say("device %d: freed %#llx", it->second.device, p);
  release(it);
  return CUDA_SUCCESS;
}
// simcuda_guard is memory beside what the device has, for the allocator above to try its
// blocks in: it ends where it should, to 16 bytes, before a hole. simcuda_unguard takes it
// away once the stream comes to it.
API simcuda_guard(CUdeviceptr *p, size_t n) {
  ENTER;
  size_t bytes = up(n, 16), size = up(n, page);
  CUdeviceptr at = reserve(size, page);
  if (n == 0 || !at || !back(at, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  *p = at + size - bytes;
  Range r{at, size, *p, n, ctx->device, ctx};
  r.guarded = true;
  appear(at, ranges.emplace(at, r).first->second);
  say("device %d: %zu guarded bytes at %#llx", ctx->device, n, *p);
  return CUDA_SUCCESS;
}
API simcuda_unguard(void *handle, CUdeviceptr p) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  auto it = rangeAt(p);
  if (it == ranges.end() || it->second.ptr != p || !it->second.guarded) return CUDA_ERROR_INVALID_VALUE;
  push(s, [=]() -> CUresult {
    auto it = rangeAt(p);
    if (it != ranges.end()) release(it);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}
API cuMemGetInfo_v2(size_t *free, size_t *all) {
  ENTER;
  size_t gone = others(ctx->device) + used[ctx->device];
  *all = total(ctx->device), *free = *all > gone ? *all - gone : 0;
  return CUDA_SUCCESS;
}
API cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p) {
  ENTER;
  auto it = rangeAt(p);
  if (it == ranges.end()) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = it->second.ptr;
  if (size) *size = it->second.bytes;
  return CUDA_SUCCESS;
}

// Pinned memory.

API cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  ENTER;
  if (n == 0 || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  size_t size = up(n, page);
  if (size > settings.pinned - std::min(settings.pinned, pinnedBytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  pinnedBytes += size;
  pinned[(CUdeviceptr)*p] = n;
  return CUDA_SUCCESS;
}
API cuMemAllocHost_v2(void **p, size_t n) { return cuMemHostAlloc(p, n, 0); }
static std::set<CUdeviceptr> registered;
API cuMemFreeHost(void *p) {
  ENTER;
  auto it = pinned.find((CUdeviceptr)p);
  if (it == pinned.end() || registered.count(it->first)) return CUDA_ERROR_INVALID_VALUE;
  drainDevice(ctx->device);
  munmap(p, up(it->second, page));
  pinnedBytes -= up(it->second, page);
  pinned.erase(it);
  return ctx->error;
}
API cuMemHostRegister_v2(void *p, size_t n, unsigned) {
  ENTER;
  if (!p || n == 0) return CUDA_ERROR_INVALID_VALUE;
  if (placeOf((CUdeviceptr)p).found) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  pinned[(CUdeviceptr)p] = n;
  registered.insert((CUdeviceptr)p);
  return CUDA_SUCCESS;
}
API cuMemHostUnregister(void *p) {
  ENTER;
  if (!registered.erase((CUdeviceptr)p)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  pinned.erase((CUdeviceptr)p);
  return CUDA_SUCCESS;
}
API cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned) {
  ENTER;
  *d = (CUdeviceptr)p;
  return placeOf(*d).pinned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuMemHostGetFlags(unsigned *flags, void *p) {
  ENTER;
  *flags = 0;
  return placeOf((CUdeviceptr)p).pinned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuPointerGetAttribute(void *data, int attribute, CUdeviceptr p) {
  ENTER;
  Place at = placeOf(p);
  if (!at.found) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case 1: *(Context **)data = at.owner; break;
  case 2: *(unsigned *)data = at.pinned ? 1 : 2; break; // host, device
  case 3: *(CUdeviceptr *)data = p; break;
  case 9: *(int *)data = at.pinned ? ctx->device : at.device; break;
  case 11: *(CUdeviceptr *)data = at.base; break;
  case 12: *(size_t *)data = at.size; break;
  default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// Virtual memory. A handle is mapped once at a time, and what it held is lost when it is
// unmapped.

struct CUmemLocation { int type, id; };
struct CUmemAllocationProp {
  int type, handleTypes;
  CUmemLocation location;
  void *win32;
  unsigned char compression, rdma;
  unsigned short usage;
  unsigned char reserved[4];
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags; // 0: none, 1: read, 3: read and write
};

static CUresult validate(const CUmemAllocationProp *p) {
  if (!settings.growable) return CUDA_ERROR_NOT_SUPPORTED;
  if (p->type != 1 || p->location.type != 1) return CUDA_ERROR_INVALID_VALUE; // pinned, on a device
  return p->location.id >= 0 && p->location.id < settings.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
API cuMemGetAllocationGranularity(size_t *n, const CUmemAllocationProp *prop, int) {
  TRY(validate(prop));
  *n = granule;
  return CUDA_SUCCESS;
}
API cuMemAddressReserve(CUdeviceptr *p, size_t size, size_t align, CUdeviceptr, unsigned long long flags) {
  ENTER;
  if (size == 0 || size % granule || flags || (align & (align - 1))) return CUDA_ERROR_INVALID_VALUE;
  auto old = unreserved.find(size);
  if (old != unreserved.end() && (align == 0 || old->second % align == 0))
    *p = old->second, unreserved.erase(old);
  else
    *p = reserve(size, std::max(align, granule));
  if (!*p) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations[*p] = size;
  return CUDA_SUCCESS;
}
static bool anyIn(CUdeviceptr p, size_t size) {
  auto it = ranges.lower_bound(p);
  return it != ranges.end() && it->first < p + size;
}
API cuMemAddressFree(CUdeviceptr p, size_t size) {
  ENTER;
  auto it = reservations.find(p);
  if (it == reservations.end() || it->second != size || anyIn(p, size)) return CUDA_ERROR_INVALID_VALUE;
  reservations.erase(it);
  unreserved.emplace(size, p);
  return CUDA_SUCCESS;
}
API cuMemCreate(Handle **h, size_t size, const CUmemAllocationProp *prop, unsigned long long flags) {
  ENTER;
  TRY(validate(prop));
  if (size == 0 || size % granule || flags) return CUDA_ERROR_INVALID_VALUE;
  if (!take(prop->location.id, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  handles.insert(*h = new Handle{prop->location.id, size});
  return CUDA_SUCCESS;
}
API cuMemRelease(Handle *h) {
  ENTER;
  if (!handles.count(h) || h->released) return CUDA_ERROR_INVALID_VALUE;
  h->released = true;
  drop(h);
  return CUDA_SUCCESS;
}
API cuMemMap(CUdeviceptr p, size_t size, size_t offset, Handle *h, unsigned long long flags) {
  ENTER;
  if (!handles.count(h) || h->released || size != h->size || offset || flags || p % granule) return CUDA_ERROR_INVALID_VALUE;
  auto it = reservations.upper_bound(p);
  if (it == reservations.begin() || p + size > (--it)->first + it->second || anyIn(p, size)) return CUDA_ERROR_INVALID_VALUE;
  if (h->mapped) return CUDA_ERROR_NOT_SUPPORTED;
  if (!back(p, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  h->mapped = p;
  ranges.emplace(p, Range{p, size, p, size, h->device, nullptr, h});
  return CUDA_SUCCESS;
}

// each calls fn for the mappings that make up the addresses; there may be no hole.
static CUresult each(CUdeviceptr p, size_t size, const std::function<void(std::map<CUdeviceptr, Range>::iterator)> &fn) {
  for (CUdeviceptr at = p; at < p + size;) {
    auto it = ranges.find(at);
    if (it == ranges.end() || !it->second.handle || at + it->second.size > p + size) return CUDA_ERROR_INVALID_VALUE;
    at += it->second.size;
  }
  for (CUdeviceptr at = p; at < p + size;) {
    auto it = ranges.find(at);
    at += it->second.size;
    fn(it);
  }
  return CUDA_SUCCESS;
}
API cuMemSetAccess(CUdeviceptr p, size_t size, const CUmemAccessDesc *desc, size_t count) {
  ENTER;
  for (size_t i = 0; i < count; i++)
    if (desc[i].location.type != 1 || (desc[i].flags != 0 && desc[i].flags != 3)) return CUDA_ERROR_INVALID_VALUE;
  return each(p, size, [=](auto it) {
    for (size_t i = 0; i < count; i++)
      if (desc[i].flags) it->second.access.insert(desc[i].location.id);
      else it->second.access.erase(desc[i].location.id);
    appear(it->first, it->second);
  });
}
API cuMemUnmap(CUdeviceptr p, size_t size) {
  ENTER;
  return each(p, size, [](auto it) { // work that still uses it will fault
    Handle *h = it->second.handle;
    vanish(it->first, it->second);
    freed[it->first] = it->second.size;
    ranges.erase(it);
    h->mapped = 0;
    drop(h);
  });
}

// Copies. What lies in ordinary host memory is read, or written, before the call returns.

enum Side { Host, Device, Any };

static CUresult copyNow(CUdeviceptr dst, CUdeviceptr src, size_t n) {
  touch(dst), touch(src);
  return guarded([=] { memmove((void *)dst, (void *)src, n); }, "copy");
}

static CUresult copy(void *handle, bool async, CUdeviceptr dst, Side to, CUdeviceptr src, Side from, size_t n) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  if (n == 0) return CUDA_SUCCESS;
  Place d = placeOf(dst), f = placeOf(src);
  bool toHost = !d.found || d.pinned, fromHost = !f.found || f.pinned;
  if ((to == Device && !d.found) || (from == Device && !f.found)) return CUDA_ERROR_INVALID_VALUE;
  if ((d.found && !reaches(dst, n)) || (f.found && !reaches(src, n))) return CUDA_ERROR_INVALID_VALUE;
  if ((to == Host && !toHost) || (from == Host && !fromHost)) return CUDA_ERROR_INVALID_VALUE;
  if (async && !f.found) {
    auto staged = std::make_shared<std::vector<char>>((char *)src, (char *)src + n);
    push(s, [=] { return copyNow(dst, (CUdeviceptr)staged->data(), n); }, n);
  } else
    push(s, [=] { return copyNow(dst, src, n); });
  bool wait = !d.found || (!async && (toHost || fromHost)); // between devices nothing waits
  if (wait) runUntil(markOf(s));
  return ctx->error;
}

API cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) { return copy(nullptr, false, d, Device, (CUdeviceptr)s, Host, n); }
API cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) { return copy(nullptr, false, (CUdeviceptr)d, Host, s, Device, n); }
API cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n) { return copy(nullptr, false, d, Device, s, Device, n); }
API cuMemcpy(CUdeviceptr d, CUdeviceptr s, size_t n) { return copy(nullptr, false, d, Any, s, Any, n); }
API cuMemcpyPeer(CUdeviceptr d, Context *, CUdeviceptr s, Context *, size_t n) { return copy(nullptr, false, d, Device, s, Device, n); }
API cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, void *q) { return copy(q, true, d, Device, (CUdeviceptr)s, Host, n); }
API cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, void *q) { return copy(q, true, (CUdeviceptr)d, Host, s, Device, n); }
API cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, void *q) { return copy(q, true, d, Device, s, Device, n); }
API cuMemcpyAsync(CUdeviceptr d, CUdeviceptr s, size_t n, void *q) { return copy(q, true, d, Any, s, Any, n); }
API cuMemcpyPeerAsync(CUdeviceptr d, Context *, CUdeviceptr s, Context *, size_t n, void *q) { return copy(q, true, d, Device, s, Device, n); }

template <class T> static CUresult fill(void *handle, CUdeviceptr p, T v, size_t n) {
  ENTER;
  Stream *s;
  TRY(streamOf(handle, &s));
  if (n == 0) return CUDA_SUCCESS;
  if (p % sizeof(T) || !reaches(p, n * sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  push(s, [=] {
    return guarded([=] { std::fill_n((T *)p, n, v); }, "memset");
  });
  return CUDA_SUCCESS;
}
API cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n) { return fill(nullptr, p, v, n); }
API cuMemsetD16_v2(CUdeviceptr p, unsigned short v, size_t n) { return fill(nullptr, p, v, n); }
API cuMemsetD32_v2(CUdeviceptr p, unsigned v, size_t n) { return fill(nullptr, p, v, n); }
API cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, void *q) { return fill(q, p, v, n); }
API cuMemsetD16Async(CUdeviceptr p, unsigned short v, size_t n, void *q) { return fill(q, p, v, n); }
API cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, void *q) { return fill(q, p, v, n); }
