//go:build cuda

package cuda

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/snug-ml/snug/internal/driver"
)

func openDevice(t *testing.T) *Device {
	t.Helper()
	d, err := Open(0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.(*Device)
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func mapped(t *testing.T, s driver.Source, bytes int64) []byte {
	t.Helper()
	mem, err := s.Map(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Unmap(mem) })
	return mem
}

// What is in memory of the device arrives as it was, also where the source is written over
// as soon as Upload returns.
func TestUploadAndDownload(t *testing.T) {
	d := openDevice(t)
	mem := mapped(t, d.Memory(), 1<<20)
	for _, n := range []int{0, 1, 511, 70000, 1 << 20} {
		want := noise(n)
		src, got := bytes.Clone(want), make([]byte, n)
		if err := errors.Join(d.Clear(mem), d.Upload(mem[:n], src)); err != nil {
			t.Fatal(err)
		}
		clear(src)
		if err := d.Download(got, mem[:n]); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %v, or other ones", n, err)
		}
	}
}

// Copies beside the computation come after what was queued before they began, and before
// what is queued once they are joined; also by way of memory that the driver must not reach.
func TestStartAndJoin(t *testing.T) {
	d := openDevice(t)
	const n = bounceBytes + 12345
	mem, pinned := mapped(t, d.Memory(), n), mapped(t, d.Pinned(), n)
	passed := 0
	through := func(dst, src []byte) error { passed += copy(dst, src); return nil }
	for _, via := range []func(dst, src []byte) error{nil, through} {
		for round := range 3 {
			host := pinned
			if via != nil {
				host = make([]byte, n)
			}
			want, got := noise(n-round), make([]byte, n-round)
			host, part := host[:n-round], mem[:n-round]
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(d.Upload(part, want))
			out := d.Start(host, part, true, via)
			check(out.Join())
			check(d.Clear(part))
			in := d.Start(part, host, false, via)
			check(in.Join())
			check(d.Download(got, part))
			if !bytes.Equal(got, want) {
				t.Fatalf("round %d, via %v: other bytes", round, via != nil)
			}
			check(d.Wait())
		}
	}
	if passed < 6*(n-3) {
		t.Errorf("%d bytes went through", passed)
	}
	if err := d.Start(make([]byte, 10), mem[:10], true, func(_, _ []byte) error { return os.ErrClosed }).Join(); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// Addresses get memory and lose it in granules; what the card has not is an error.
func TestGrowingMemory(t *testing.T) {
	d := openDevice(t)
	if !d.Growable() {
		t.Skip("the driver has no virtual memory calls")
	}
	s := d.Memory().(deviceSource)
	mem, err := s.Reserve(64 << 30)
	if err != nil {
		t.Fatal(err)
	}
	part := mem[6<<20 : 14<<20]
	for range 2 {
		if err := s.Commit(part); err != nil {
			t.Fatal(err)
		}
		want, got := noise(len(part)), make([]byte, len(part))
		if err := errors.Join(d.Upload(part, want), d.Download(got, part)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v, or other bytes", err)
		}
		s.Decommit(part[2<<20 : 4<<20])
		s.Decommit(part[:2<<20])
		s.Decommit(part[4<<20:])
	}
	if err := s.Commit(mem[:48<<30]); err == nil || !strings.Contains(err.Error(), "other processes") {
		t.Errorf("%v", err)
	}
	if err := s.Commit(part); err != nil {
		t.Error("after a refusal: ", err)
	}
	if got := d.reserved.Load(); got != int64(len(part)) {
		t.Errorf("%d bytes reserved, want %d", got, len(part))
	}
	s.Unmap(mem)
	if got := d.reserved.Load(); got != 0 {
		t.Errorf("%d bytes reserved after all", got)
	}
}

func TestTooMuchMemory(t *testing.T) {
	d := openDevice(t)
	if _, err := d.Memory().Map(1 << 44); err == nil || !strings.Contains(err.Error(), "other processes") {
		t.Errorf("%v", err)
	}
	mapped(t, d.Memory(), 1000)
}

// Pinned memory takes whole pages and no more: of 8 pages there are 3, 3 and 2. The limit is
// read when a process starts.
func TestPinnedPages(t *testing.T) {
	const role, page = "SNUG_PINNED_PAGES", 4096
	if os.Getenv("SIMCUDA") == "" {
		t.Skip("not on the simulated device")
	}
	if os.Getenv(role) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPinnedPages$", "-test.v")
		cmd.Env = append(os.Environ(), role+"=1", "SIMCUDA_PINNED=32768")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	d := openDevice(t)
	for _, bytes := range []int64{2*page + 1, 3 * page, page + 5} {
		if mem := mapped(t, d.Pinned(), bytes); int64(len(mem)) != bytes {
			t.Errorf("%d bytes, want %d", len(mem), bytes)
		}
	}
	if _, err := d.Pinned().Map(1); err == nil || !strings.Contains(err.Error(), "1 bytes wanted") {
		t.Errorf("a ninth page: %v", err)
	}
}

// Devices that have one another's memory.
func TestReceive(t *testing.T) {
	a := openDevice(t)
	other, err := Open(1)
	if err != nil {
		t.Skip(err)
	}
	defer other.Close()
	b := other.(*Device)
	const n = 100000
	from, to := mapped(t, a.Memory(), n), mapped(t, b.Memory(), n)
	want, got := noise(n), make([]byte, n)
	if err := errors.Join(a.Upload(from, want), b.Receive(to, a, from), a.Clear(from), b.Download(got, to)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or other bytes", err)
	}
}

// A kernel that is not there is an error of starting it, and the device goes on.
func TestMissingKernel(t *testing.T) {
	d := openDevice(t)
	for _, l := range []*Launch{
		{Module: "copy", Function: "none", Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}},
		{Module: "none", Function: "none", Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}},
	} {
		if err := d.Launch(l); err == nil || !strings.Contains(err.Error(), "none") {
			t.Errorf("%v", err)
		}
	}
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
}

// After an illegal address every call says that the device is lost, and by what. The driver
// may give this process no other context: so another one tries.
func TestLostDevice(t *testing.T) {
	const role = "SNUG_LOSE_DEVICE"
	if os.Getenv(role) == "" {
		openDevice(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestLostDevice$", "-test.v")
		cmd.Env = append(os.Environ(), role+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dev, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	d := dev.(*Device)
	out := driver.Array{Type: driver.Float32, Shape: []int{1000}, Strides: []int{1}, Data: stretch(0x7000, 4000)}
	k, err := driver.Find("fill", driver.Float32, backend)
	if err != nil {
		t.Fatal(err)
	}
	k.Run(&driver.Args{Out: []driver.Array{out}, F: []float64{1}, Queue: d.Queue()})
	if err := d.Wait(); !errors.Is(err, driver.ErrDeviceLost) || !strings.Contains(err.Error(), "illegal") {
		t.Errorf("%v", err)
	}
	_, noMemory := d.Memory().Map(1 << 20)
	for _, err := range []error{noMemory, d.Err(), d.Upload(out.Data, make([]byte, 10)), d.Wait(), d.Close()} {
		if !errors.Is(err, driver.ErrDeviceLost) {
			t.Errorf("%v", err)
		}
	}
}

func BenchmarkLaunch(b *testing.B) {
	dev, err := Open(0)
	if err != nil {
		b.Skip(err)
	}
	defer dev.Close()
	mem, err := dev.Memory().Map(4096)
	if err != nil {
		b.Fatal(err)
	}
	k, err := driver.Find("fill", driver.Float32, backend)
	if err != nil {
		b.Fatal(err)
	}
	a := driver.Args{Out: []driver.Array{{Type: driver.Float32, Shape: []int{64}, Strides: []int{1}, Data: mem}}, F: []float64{1}, Queue: dev.Queue()}
	b.ReportAllocs()
	for b.Loop() {
		k.Run(&a)
	}
	if err := errors.Join(a.Err, dev.Wait()); err != nil {
		b.Fatal(err)
	}
}
