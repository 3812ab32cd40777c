// Package simcuda holds a stand-in for NVIDIA's driver, in C++, that runs the project's
// kernels on the host; README.md describes it. This package only tests it.
package simcuda
