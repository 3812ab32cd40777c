//go:build cuda && snugdebug

package snug

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/memory"
)

// In these builds the simulated device notices a kernel that writes beyond its block, though
// the allocator has another one there, and one that comes after its block was freed. Each
// loses the device, so another process tries.
func TestKernelsStayInTheirBlocks(t *testing.T) {
	const role = "SNUG_WRONG_KERNEL"
	wrong := os.Getenv(role)
	if wrong == "" {
		if os.Getenv("SIMCUDA") == "" {
			t.Skip("not on the simulated device")
		}
		for _, wrong := range []string{"none", "beyond", "freed"} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestKernelsStayInTheirBlocks$", "-test.v")
			cmd.Env = append(os.Environ(), role+"="+wrong)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("%s: %v\n%s", wrong, err, out)
			}
		}
		return
	}
	d, err := Open("cuda:0", Config{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	block := func() *memory.Block {
		b, err := d.mem.Alloc(memory.Request{Bytes: 4 * n})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := block()
	block()
	elements, mem := n, first.Bytes()
	switch wrong {
	case "beyond":
		elements += 4
	case "freed":
		d.mem.Free(first)
	}
	k, err := driver.Find("fill", Float32, d.backend)
	if err != nil {
		t.Fatal(err)
	}
	a := &driver.Args{F: []float64{1}, Out: []driver.Array{{Type: Float32, Shape: []int{elements}, Strides: []int{1}, Data: mem}}}
	err = errors.Join(d.launch(k, a, d.mem, nil), d.card.Wait())
	if errors.Is(err, ErrDeviceLost) != (wrong != "none") {
		t.Errorf("%s: %v", wrong, err)
	}
}
