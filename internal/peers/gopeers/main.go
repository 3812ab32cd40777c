// Gopeers times a training step in other Go libraries, as they come: the same models, loss and
// SGD with momentum as internal/peers has them. It is a module of its own, so that nothing
// else depends on those libraries.
//
// gopeers LIBRARY MODEL THREADS BATCH STEPS prints the median of a step in milliseconds and
// the resident MiB above the built model, at the peak. LIBRARY is gorgonia (mlp, resnet18
// with the stem for small images) or gomlx, by its backend in Go (mlp).
package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	rate     = 0.001
	momentum = 0.9
)

var layers = []int{784, 1024, 1024, 10} // of the MLP

// results is where figures go; what the libraries print goes elsewhere.
var results = os.Stdout

func main() {
	os.Stdout = os.Stderr
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gopeers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("wanted LIBRARY MODEL THREADS BATCH STEPS, got %q", args)
	}
	var numbers [3]int
	for i, a := range args[2:] {
		n, err := strconv.Atoi(a)
		if err != nil || n < 1 {
			return fmt.Errorf("wanted a positive number, got %q", a)
		}
		numbers[i] = n
	}
	threads, batch, steps := numbers[0], numbers[1], numbers[2]
	runtime.GOMAXPROCS(threads)
	build, ok := map[string]func(batch, threads int) (step, error){
		"gorgonia mlp":      gorgoniaMLP,
		"gorgonia resnet18": gorgoniaResNet18,
		"gomlx mlp":         gomlxMLP,
	}[args[0]+" "+args[1]]
	if !ok {
		return fmt.Errorf("no %s of %s", args[1], args[0])
	}
	train, err := build(batch, threads)
	if err != nil {
		return err
	}
	return measure(train, steps)
}

// step trains once and returns the loss before.
type step func() (float64, error)

func measure(train step, steps int) error {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins here
		return err
	}
	base, err := status("VmRSS:")
	if err != nil {
		return err
	}
	const warm = 1
	var times, losses []float64
	for i := range warm + steps {
		start := time.Now()
		loss, err := train()
		if err != nil {
			return err
		}
		losses = append(losses, loss)
		if i >= warm {
			times = append(times, time.Since(start).Seconds()*1e3)
		}
	}
	if first, last := losses[0], losses[len(losses)-1]; !(last < first) || math.IsInf(first, 0) {
		return fmt.Errorf("the loss does not fall: %v", losses)
	}
	fmt.Fprintf(os.Stderr, "losses %.4f\n", losses)
	peak, err := status("VmHWM:")
	slices.Sort(times)
	fmt.Fprintf(results, "%.3f %.1f\n", times[len(times)/2], peak-base)
	return err
}

// status is a line of /proc/self/status in MiB.
func status(key string) (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(b), key)
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		return 0, fmt.Errorf("/proc/self/status has no number for %s", key)
	}
	return kib / 1024, nil
}

var random = rand.New(rand.NewPCG(1, 2))

// normal are inputs.
func normal(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}

// uniform are weights of a linear layer or a convolution, as PyTorch and this project draw them.
func uniform(n, fanIn int) []float32 {
	v, bound := make([]float32, n), 1/math.Sqrt(float64(fanIn))
	for i := range v {
		v[i] = float32((2*random.Float64() - 1) * bound)
	}
	return v
}

func constant(n int, c float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = c
	}
	return v
}

func labels(n, classes int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = random.IntN(classes)
	}
	return v
}
