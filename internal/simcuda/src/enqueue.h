// How the stand-ins of NVIDIA's libraries reach the driver's.
#pragma once

extern "C" {
// simcuda_enqueue has a stream of the current context call run(arg), which frees arg.
// Where run touches what it must not, the context fails, as for a kernel.
int simcuda_enqueue(void *stream, const char *what, void (*run)(void *), void *arg);
}
