// The simulated driver: what its parts share. Every call of the API holds one lock, also
// while work runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

// The part of cuda.h that is needed. Names that begin with CU and cu are NVIDIA's.
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_FILE_NOT_FOUND = 301,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
};

#define API extern "C" __attribute__((visibility("default"))) CUresult

const int mostShared = 163 << 10; // of a block, where a kernel has asked for it

// Settings come from the environment when the driver is initialised.
struct Settings {
  int devices = 1, version = 12040, major = 8, minor = 0, processors = 4;
  std::vector<size_t> bytes{1u << 30}; // of each device; the last one counts for those after it
  std::vector<size_t> others{0};       // taken by other processes
  size_t pinned = 16ull << 30;
  unsigned long long seed = 1;
  unsigned threads = 1;
  bool protect = true, growable = true, peer = true, log = false;
  std::string kernels;
};
extern Settings settings;
extern std::mutex lock;
extern std::mt19937_64 random64;
void say(const char *format, ...) __attribute__((format(printf, 1, 2))); // to stderr, with SIMCUDA_LOG

struct Stream;
struct Context {
  int device;
  bool primary = false;
  int retained = 0;
  CUresult error = CUDA_SUCCESS; // sticks until the context is destroyed
  std::set<int> peers;           // devices whose memory kernels may use
  Stream *null;                  // the default stream
};
Context *current();
bool alive(Context *);

// Mark is done when all that was queued before it has run.
struct Mark {
  Stream *stream;
  bool done = false;
  double ms = 0;
};
typedef std::shared_ptr<Mark> MarkRef;

struct Op {
  std::function<CUresult()> run; // none: the stream waits for a mark
  MarkRef wait;
  size_t bytes; // of host memory that it holds
};
struct Stream {
  Context *ctx;
  bool blocking;
  std::deque<Op> ops;
};

// queue.cpp
Stream *newStream(Context *, bool blocking);
void dropContext(Context *); // runs nothing, forgets its streams and events
CUresult streamOf(void *handle, Stream **);
void push(Stream *, std::function<CUresult()>, size_t bytes = 0);
MarkRef markOf(Stream *);
void runUntil(const MarkRef &);
void drain(Context *);      // all streams of a context
void drainDevice(int device);
CUresult fail(Context *, CUresult); // makes an error stick

// memory.cpp
struct Place {
  bool found = false, pinned = false, access = true;
  int device = -1;
  Context *owner = nullptr;
  CUdeviceptr base = 0;
  size_t size = 0; // from base
};
Place placeOf(CUdeviceptr);             // also one past the end of an allocation
bool reaches(CUdeviceptr, size_t bytes); // is all of it device memory or pinned
void openMemory();                       // work runs from now on
void closeMemory();
bool touch(CUdeviceptr); // makes memory that work may use reachable; false: there is none
void freeContextMemory(Context *);
std::string describe(CUdeviceptr);

// launch.cpp
CUresult guarded(const std::function<void()> &, const char *what); // turns a fault into an error
void dropModules(Context *);

#define TRY(call)                                     \
  do {                                                \
    if (CUresult r = (call); r != CUDA_SUCCESS) return r; \
  } while (0)

// ENTER begins every call that needs a context.
CUresult enter(Context **);
#define ENTER                              \
  std::lock_guard<std::mutex> held(lock);  \
  Context *ctx;                            \
  TRY(enter(&ctx))
