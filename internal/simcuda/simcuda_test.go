package simcuda

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// compiled makes testdata/probe.cpp, which has the cases, and its kernels.
var compiled = sync.OnceValues(func() (dir string, err error) {
	sim, err := filepath.Abs(os.Getenv("SIMCUDA"))
	if err != nil {
		return "", err
	}
	dir = filepath.Join(sim, "probe")
	build := exec.Command("./build.sh", dir, sim)
	build.Env = append(os.Environ(), "KERNELS=testdata/kernels")
	link := exec.Command("g++", "-std=c++17", "-o", filepath.Join(dir, "probe"), "testdata/probe.cpp", filepath.Join(sim, "libcuda.so.1"), "-Wl,-rpath,"+sim)
	for _, cmd := range []*exec.Cmd{build, link} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return dir, nil
})

func probe(t *testing.T) (dir string) {
	t.Helper()
	if os.Getenv("SIMCUDA") == "" {
		t.Skip("SIMCUDA does not name the folder that build.sh made")
	}
	dir, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// outcome is what a case ended with: 0, or 3 where the fault that it has shows.
func outcome(t *testing.T, dir, name string, env ...string) (code int, stderr string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "probe"), name)
	cmd.Env = append(append(os.Environ(), "SIMCUDA_KERNELS="+filepath.Join(dir, "kernels.so")), env...)
	var text bytes.Buffer
	cmd.Stderr = &text
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

func TestDriver(t *testing.T) {
	dir := probe(t)
	for _, c := range []struct{ name, env, says string }{
		{"kernels", "", "invalid launch"},
		{"diverge", "", "barrier was reached by some threads"},
		{"events", "", ""},
		{"query", "", ""},
		{"poison", "", ""},
		{"bounds", "", "byte 512 of 512"},
		{"guarded", "", "byte 112 of 100"},
		{"unguarded", "", "freed at"},
		{"freed", "", "freed at"},
		{"freedParameter", "", "parameter 0"},
		{"hostParameter", "", "not device memory"},
		{"misaligned", "", "misaligned"},
		{"null", "", "illegal address"},
		{"limits", "SIMCUDA_DEVICES=2 SIMCUDA_BYTES=1M,2M SIMCUDA_OTHERS=0,1M", ""},
		{"peers", "SIMCUDA_DEVICES=2", "not enabled"},
		{"growable", "", ""},
		{"contexts", "", ""},
	} {
		for seed := range 5 {
			env := append(strings.Fields(c.env), "SIMCUDA_SEED="+strconv.Itoa(seed))
			code, stderr := outcome(t, dir, c.name, env...)
			if code != 0 || !strings.Contains(stderr, c.says) {
				t.Errorf("%s, seed %d: exit code %d, want 0; stderr %q, want %q", c.name, seed, code, stderr, c.says)
			}
		}
	}
}

// What a program must not do is seen with some seeds at least, and never without it.
func TestFaultsShow(t *testing.T) {
	dir := probe(t)
	for _, name := range []string{"missing", "barrier", "pinned"} {
		seen := 0
		for seed := range 10 {
			switch code, stderr := outcome(t, dir, name, "SIMCUDA_SEED="+strconv.Itoa(seed)); code {
			case 0:
			case 3:
				seen++
			default:
				t.Errorf("%s, seed %d: exit code %d\n%s", name, seed, code, stderr)
			}
		}
		if seen < 3 {
			t.Errorf("%s: seen with %d seeds of 10", name, seen)
		}
	}
}

// The host cannot read device memory while nothing runs.
func TestHostIsKeptOut(t *testing.T) {
	dir := probe(t)
	if code, stderr := outcome(t, dir, "host"); code != -1 || !strings.Contains(stderr, "the host reads or writes device memory") {
		t.Errorf("exit code %d, want a signal; stderr %q", code, stderr)
	}
	if code, stderr := outcome(t, dir, "host", "SIMCUDA_PROTECT=0"); code != 0 {
		t.Errorf("unprotected: exit code %d, want 0; stderr %q", code, stderr)
	}
}
