package cuda

import (
	"testing"

	"github.com/snug-ml/snug/internal/driver"
	_ "github.com/snug-ml/snug/internal/host"
)

// A device has the kernels that the host has, and takes the same arguments.
func TestKernelsOfTheHost(t *testing.T) {
	for _, name := range driver.Names("cpu") {
		for dtype := driver.Float32; dtype <= driver.Bool; dtype++ {
			host, err := driver.Find(name, dtype, "cpu")
			if err != nil {
				continue
			}
			k, err := driver.Find(name, dtype, backend)
			switch {
			case err != nil:
				t.Error(err)
			case k.Strided != host.Strided || k.Mixed != host.Mixed:
				t.Errorf("%s of %s: strided %t, mixed %t; on the host %t, %t", name, dtype, k.Strided, k.Mixed, host.Strided, host.Mixed)
			}
		}
	}
}
