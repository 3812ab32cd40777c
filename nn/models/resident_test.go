package models_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/nn/models"
	"github.com/snug-ml/snug/optim"
)

// The process's resident memory follows the allocator's peak within 10 %: what statistics
// say is what the machine sees. A process of its own trains, so that nothing else counts.
func TestResidentMemoryFollows(t *testing.T) {
	testdevice.CPU(t, "a card's memory is none of the process")
	if _, err := resident("VmHWM"); err != nil {
		t.Skip("no /proc: ", err)
	}
	if race {
		t.Skip("under the race detector memory comes from Go's heap, which goes back when it likes")
	}
	if os.Getenv("SNUG_RESIDENT") != "" {
		trainAndTell(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestResidentMemoryFollows$", "-test.v")
	cmd.Env = append(os.Environ(), "SNUG_RESIDENT=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var grown, reserved, allocated int64
	_, told, _ := strings.Cut(string(out), "resident: ")
	if _, err := fmt.Sscan(told, &grown, &reserved, &allocated); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("resident memory grew by %d MiB, reserved by %d, allocated by %d", grown>>20, reserved>>20, allocated>>20)
	if !(float64(grown) <= 1.1*float64(reserved)) || !(float64(grown) >= 0.9*float64(allocated)) {
		t.Errorf("resident memory grew by %d bytes, the allocator reserved %d and gave %d at their peaks", grown, reserved, allocated)
	}
}

func trainAndTell(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 4 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	debug.SetGCPercent(20) // Go's own heap is small, and stays so
	m := models.NewGPT(models.GPTConfig{Vocabulary: 256, Context: 128, Width: 256, Heads: 8, Layers: 4})
	debug.FreeOSMemory()
	before, err := resident("VmRSS")
	if err != nil {
		t.Fatal(err)
	}
	if err := nn.Init(bg, d, m, snug.NewRand(1)); err != nil {
		t.Fatal(err)
	}
	o, err := optim.NewSGD(nn.Params(m), optim.DefaultSGD())
	if err != nil {
		t.Fatal(err)
	}
	w := optim.NewWindow(o, optim.WindowConfig{})
	for range 2 {
		if err := d.Train(bg, func(s *snug.Scope) error {
			return w.Backward(nn.CrossEntropy(m.Forward(labels(s, 256, 16, 128)), labels(s, 256, 16, 128)), 16)
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Step(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := resident("VmHWM")
	if err != nil {
		t.Fatal(err)
	}
	s := d.Memory().Stats()
	fmt.Printf("resident: %d %d %d\n", after-before, s.Peak.Reserved, s.Peak.Allocated)
}

// resident is a line of /proc/self/status, in bytes.
func resident(line string) (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(b), line+":")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		return 0, fmt.Errorf("no %s in /proc/self/status", line)
	}
	return kib << 10, nil
}
