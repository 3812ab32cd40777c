package host

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

// An attentionCase has its operands as a self-attention has: side by side in [b t 3·h·d], and backward's in arrays like y.
type attentionCase struct {
	batch, heads, rows, width int
	causal                    bool
	dtype                     driver.DType
}

func (c attentionCase) String() string {
	return fmt.Sprintf("%dx%dx%dx%d,causal=%v,%v", c.batch, c.heads, c.rows, c.width, c.causal, c.dtype)
}

// array is [b h t d] of the i-th of parts side by side.
func (c attentionCase) array(data []byte, i, parts int) driver.Array {
	line := parts * c.heads * c.width
	off := i * c.heads * c.width * int(c.dtype.Size())
	return driver.Array{Type: c.dtype, Shape: []int{c.batch, c.heads, c.rows, c.width},
		Strides: []int{c.rows * line, c.width, line, 1}, Data: data[off:]}
}

func (c attentionCase) data(parts int) []byte {
	return make([]byte, parts*c.batch*c.heads*c.rows*c.width*int(c.dtype.Size()))
}

// args are those of forward and of backward, which reads what forward wrote.
func (c attentionCase) args(threads int) (forward, backward *driver.Args) {
	x, dx := c.data(3), c.data(3)
	y, dy := c.array(c.data(1), 0, 1), c.array(c.data(1), 0, 1)
	for i, a := range []driver.Array{{Type: c.dtype, Shape: []int{len(x) / int(c.dtype.Size())}, Strides: []int{1}, Data: x}, dy} {
		store := store[float32](&a)
		v := make([]float32, 1)
		for j := range len(a.Data) / int(c.dtype.Size()) {
			v[0] = float32(math.Sin(float64(j*(i+7)) * 0.7))
			store(v, j, 1)
		}
	}
	sums := driver.Array{Type: driver.Float32, Shape: []int{c.batch, c.heads, c.rows}, Strides: driver.RowMajor([]int{c.batch, c.heads, c.rows}),
		Data: make([]byte, 4*c.batch*c.heads*c.rows)}
	var in, d []driver.Array
	for i := range 3 {
		in, d = append(in, c.array(x, i, 3)), append(d, c.array(dx, i, 3))
	}
	causal := []float64{0}
	if c.causal {
		causal[0] = 1
	}
	forward = &driver.Args{Out: []driver.Array{y, sums}, In: in, F: causal, Threads: threads}
	backward = &driver.Args{Out: d, In: append(slices.Clone(in), y, sums, dy), F: causal, Threads: threads}
	forward.Work = make([]byte, attentionSpace[float32](false)(forward))
	backward.Work = make([]byte, attentionSpace[float32](true)(backward))
	return
}

// How heads and blocks of queries are shared out changes no bit.
func TestAttentionThreads(t *testing.T) {
	old := runtime.GOMAXPROCS(5)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	for _, dtype := range []driver.DType{driver.Float32, driver.BFloat16} {
		for _, c := range []attentionCase{{1, 1, 300, 24, true, dtype}, {1, 2, 130, 16, false, dtype}, {2, 3, 65, 8, true, dtype}} {
			var want [][]byte
			for _, threads := range []int{1, 2, 3, 5} {
				f, b := c.args(threads)
				attend[float32](f)
				attendBackward[float32](b)
				var got [][]byte
				for _, o := range slices.Concat(f.Out, b.Out) {
					got = append(got, o.Data)
				}
				if want == nil {
					want = got
				}
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("%v: output %d differs between 1 and %d threads", c, i, threads)
					}
				}
			}
		}
	}
}

func BenchmarkAttention(b *testing.B) {
	for _, c := range []attentionCase{{8, 8, 128, 32, true, driver.Float32}, {1, 8, 1024, 64, true, driver.Float32}, {1, 8, 1024, 64, false, driver.Float32},
		{8, 8, 128, 32, true, driver.BFloat16}, {1, 8, 1024, 64, true, driver.BFloat16}} {
		for _, threads := range []int{1, 2} {
			products := float64(2*c.batch*c.heads*c.width) * float64(c.rows*c.rows)
			if c.causal {
				products /= 2
			}
			f, back := c.args(threads)
			b.Run(fmt.Sprintf("%v/forward/T%d", c, threads), func(b *testing.B) {
				for b.Loop() {
					attend[float32](f)
				}
				b.ReportMetric(2*products*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				b.ReportMetric(float64(len(f.Work)), "work-B")
			})
			b.Run(fmt.Sprintf("%v/backward/T%d", c, threads), func(b *testing.B) {
				for b.Loop() {
					attendBackward[float32](back)
				}
				b.ReportMetric(5*products*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				b.ReportMetric(float64(len(back.Work)), "work-B")
			})
		}
	}
}
