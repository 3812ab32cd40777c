// One trampoline for each function of the CUDA driver, so that a program which links
// package cu starts anywhere: the driver is looked for when the process starts. Without one
// cuInit succeeds, there are no devices, and every other call answers
// CUDA_ERROR_NO_DEVICE. A function that an older driver lacks answers SNUG_CUDA_LACKING,
// and snug_cuda_lacking names it.
#include "cuda.h"
#include <dlfcn.h>
#include <stdio.h>

static const char *lacking;
static char absent[512];

const char *snug_cuda_absent(void) { return absent[0] ? absent : NULL; }
const char *snug_cuda_lacking(void) { return lacking; }

#if defined(__x86_64__)
#define JUMP(at) "jmp *" at "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(at) "adrp x16, " at "\nldr x16, [x16, #:lo12:" at "]\nbr x16\n"
#else
#error "Snug's CUDA backend is for amd64 and arm64"
#endif

// The names are macros in part, so each goes through a second one that sees what they mean.
#define API(name, ...) TRAMPOLINE(name)
#define TRAMPOLINE(name)                                                         \
  static CUresult lacking_##name(void) {                                         \
    lacking = #name;                                                             \
    return SNUG_CUDA_LACKING;                                             \
  }                                                                              \
  __attribute__((visibility("hidden"))) void *snug_##name = (void *)lacking_##name; \
  __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", %function\n"   \
          #name ":\n" JUMP("snug_" #name) ".size " #name ", . - " #name "\n.popsection\n");
#include "functions.h"
#undef API

static struct { const char *name; void **at; } functions[] = {
#define API(name, ...) ENTRY(name)
#define ENTRY(name) {#name, &snug_##name},
#include "functions.h"
};

static CUresult noDevice(void) { return CUDA_ERROR_NO_DEVICE; }
static CUresult initialized(unsigned flags) { return CUDA_SUCCESS; }
static CUresult zero(int *count) {
  *count = 0;
  return CUDA_SUCCESS;
}

__attribute__((constructor)) static void resolve(void) {
  const char *lib = getenv("SNUG_CUDA_DRIVER");
  void *driver = dlopen(lib ? lib : "libcuda.so.1", RTLD_NOW);
  if (driver) {
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
    CUresult err = init ? init(0) : CUDA_ERROR_NOT_FOUND;
    if (err) snprintf(absent, sizeof absent, "%s: cuInit answers %d", lib ? lib : "libcuda.so.1", err);
  } else {
    snprintf(absent, sizeof absent, "%s", dlerror());
  }
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *f = absent[0] ? (void *)noDevice : dlsym(driver, functions[i].name);
    if (f) *functions[i].at = f;
  }
  if (absent[0]) {
    snug_cuInit = (void *)initialized;
    snug_cuDeviceGetCount = (void *)zero;
  }
}
