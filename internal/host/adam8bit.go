package host

import (
	"sync"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	for _, t := range []driver.DType{driver.Float32, driver.BFloat16, driver.Float16} {
		driver.Register("adam 8bit", t, backend, driver.Kernel{Run: adam8bit, Scaled: true})
	}
}

// adam8bit is adam over moments in 8 bits (Dettmers et al., 2022, "8-bit Optimizers via
// Block-wise Quantization"): a few blocks are read, stepped in float32, and rounded again
// under new scales. F is adam's; states: mean, its scales, square, its scales.
func adam8bit(a *driver.Args) {
	const few = 4 * kern.Block8 // grain is a multiple of it
	gradient, weights := newStepOperand[float32](a, 0), newStepOperand[float32](a, 1)
	c := newNumbers[float32](adamNumbers(a.F), a.Scale)
	gradient.scale = 0 // the rule multiplies
	mean, meanScale := driver.Of[uint8](&a.Out[1]), driver.Of[float32](&a.Out[2])
	square, squareScale := driver.Of[uint8](&a.Out[3]), driver.Of[float32](&a.Out[4])
	par.Range(a.Threads, a.In[0].Len(), grain, func(lo, hi int) {
		buf := blocks.Get().(*[4][few]float32)
		defer blocks.Put(buf)
		for ; lo < hi; lo += few {
			end, b := min(lo+few, hi), lo/kern.Block8
			m, v := buf[0][:end-lo], buf[1][:end-lo]
			kern.Signed8.Read(m, mean[lo:end], meanScale[b:])
			kern.Unsigned8.Read(v, square[lo:end], squareScale[b:])
			g, w := gradient.read(buf[2][:], lo, end), weights.read(buf[3][:], lo, end)
			if !kern.Adam.Run(w, g, m, v, nil, c[:]) {
				adam(&c, w, g, &states[float32]{m, v})
			}
			weights.write(w, lo)
			kern.Signed8.Write(mean[lo:end], meanScale[b:], m)
			kern.Unsigned8.Write(square[lo:end], squareScale[b:], v)
		}
	})
}

var blocks = sync.Pool{New: func() any { return new([4][4 * kern.Block8]float32) }}
