// Package host is the CPU backend. A kernel stands in a file of its operation's name and
// registers itself for float32, float64 and, by way of float32, the 16-bit floats. To
// make one fast, replace what it calls: package kern has vector code.
package host

import (
	"runtime"

	"github.com/snug-ml/snug/internal/driver"
)

const backend = "cpu"

// Threads is how many a device uses that was not told otherwise.
func Threads() int { return runtime.GOMAXPROCS(0) }

// grain is how many elements one thread takes at a time. It must not depend on the
// number of threads: sums are cut where it says.
const grain = 1 << 14

// register is for kernels over contiguous arrays. Their 16-bit versions widen all
// operands into the workspace.
func register(name string, f32, f64 driver.Kernel) {
	driver.Register(name, driver.Float32, backend, f32)
	driver.Register(name, driver.Float64, backend, f64)
	driver.Register(name, driver.BFloat16, backend, widened(f32))
	driver.Register(name, driver.Float16, backend, widened(f32))
}

// run is a kernel that needs nothing but its arguments.
func run(fn func(*driver.Args)) driver.Kernel { return driver.Kernel{Run: fn} }
