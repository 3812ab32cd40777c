package memory_test

import (
	"errors"
	"fmt"

	"github.com/snug-ml/snug/memory"
)

// heap is the simplest Source: memory of Go's own.
type heap struct{}

func (heap) Map(bytes int64) ([]byte, error) { return make([]byte, bytes), nil }
func (heap) Unmap([]byte)                    {}

// module is the simplest Owner.
type module struct{ path, op, at string }

func (m module) Path() string { return m.path }
func (m module) Op() string   { return m.op }
func (m module) At() string   { return m.at }

func Example() {
	pool := memory.New(heap{}, memory.Config{LimitBytes: 64 << 20})
	defer pool.Close()
	block, err := pool.Alloc(memory.Request{Bytes: 1000, Category: memory.Activations})
	if err != nil {
		fmt.Println(err)
		return
	}
	copy(block.Bytes(), "values")
	s := pool.Stats()
	fmt.Println(len(block.Bytes()), s.Requested, s.Allocated, memory.FormatBytes(s.Reserved))

	pool.Free(block) // the segment stays, for the next block
	s = pool.Stats()
	fmt.Println(s.Allocated, s.Peak.Allocated, memory.FormatBytes(s.Cached()))
	pool.EmptyCache()
	fmt.Println(pool.Stats().Reserved)
	// Output:
	// 1000 1000 1024 2.0 MiB
	// 0 1024 2.0 MiB
	// 0
}

func ExamplePool_Summary() {
	pool := memory.New(heap{}, memory.Config{LimitBytes: 64 << 20})
	defer pool.Close()
	for _, r := range []memory.Request{
		{Bytes: 3 << 20, Category: memory.Parameters, Owner: module{path: "layer1.0.conv1"}},
		{Bytes: 9 << 20, Category: memory.Activations, Owner: module{path: "layer1.0"}},
		{Bytes: 5000, Category: memory.Inputs},
	} {
		if _, err := pool.Alloc(r); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Print(pool.Summary())
	// Output:
	// limit                 64.0 MiB
	// cached                10.0 MiB
	//   in one piece         8.0 MiB
	// used of requested     12.0 MiB
	// retries                      0
	// rescues                      0
	// out of memory                0
	//
	//                            now        peak       total       freed
	// requested             12.0 MiB    12.0 MiB    12.0 MiB         0 B
	// allocated             12.0 MiB    12.0 MiB    12.0 MiB         0 B
	// active                12.0 MiB    12.0 MiB    12.0 MiB         0 B
	// reserved              22.0 MiB    22.0 MiB    22.0 MiB         0 B
	// inactive split        10.0 MiB    17.0 MiB    19.0 MiB     9.0 MiB
	// segments                     2           2           2           0
	// blocks                       3           3           3           0
	//
	// allocated for              now     at peak
	// parameters             3.0 MiB     3.0 MiB
	// inputs                 5.0 KiB     5.0 KiB
	// activations            9.0 MiB     9.0 MiB
	//
	// held by
	//      9.0 MiB  layer1.0
	//      3.0 MiB  layer1.0.conv1
	//      5.0 KiB  (no module)
}

func ExampleOutOfMemoryError_Report() {
	pool := memory.New(heap{}, memory.Config{LimitBytes: 64 << 20})
	defer pool.Close()
	for _, path := range []string{"layer1", "layer2", "layer3"} {
		_, err := pool.Alloc(memory.Request{Bytes: 24 << 20, Category: memory.Activations, Owner: module{path, "conv2d", "net.go:31"}})
		var full *memory.OutOfMemoryError
		if errors.As(err, &full) {
			fmt.Print(full.Report())
		}
	}
	// Output:
	// out of memory: 24.0 MiB for activations in layer3, conv2d at net.go:31 (capacity)
	//
	// limit                 64.0 MiB
	// in use                48.0 MiB
	// cached                     0 B
	//   in one piece             0 B
	// left on the device    16.0 MiB
	// retries                      1
	// out of memory                1
	//
	// allocated for              now
	// activations           48.0 MiB
	//
	// held by
	//     24.0 MiB  layer1
	//     24.0 MiB  layer2
	//
	// would free about
	//     54.0 MiB  a quarter of the batch at a time, accumulated by optim.Window
	//     32.4 MiB  amp.Autocast(snug.BFloat16)
	//     25.2 MiB  checkpoint.Every(1)
	//     10.8 MiB  offload.Activations
	//
	// advice: a smaller batch, with gradient accumulation to the same size, or checkpointing
}
