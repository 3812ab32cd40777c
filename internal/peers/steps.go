package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

//go:embed pytorch.py
var script string

// figures are of one process: the median step in milliseconds, and the MiB above the built
// model, before there is any state of an optimizer: resident ones or, on a card, those in
// the allocator's blocks.
type figures struct{ ms, mib float64 }

func ms(f figures) float64  { return f.ms }
func mib(f figures) float64 { return f.mib }

func (w work) String() string {
	name := fmt.Sprintf("%s, batch %d", w.model, w.batch)
	if w.tech != "none" {
		name += ", " + w.tech
	}
	return name
}

// steps prints a table of steps beside PyTorch's.
func steps(out io.Writer, t *table, only string) error {
	there := true // PyTorch; on a card it may be missing
	if t.works[0].device != "cpu" {
		there = exec.Command("/usr/bin/python3", "-c", "import torch; assert torch.cuda.is_available()").Run() == nil
	}
	fmt.Fprintln(out, "| work | threads | samples/s | ms | PyTorch's | ratio (least, most) | MiB | PyTorch's | ratio |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, w := range t.works {
		if !strings.Contains(t.row(w), only) {
			continue
		}
		var a, b []figures
		var ratios []float64
		for range t.turns {
			x, err := w.ours()
			if err != nil {
				return err
			}
			a = append(a, x)
			if !there {
				continue
			}
			y, err := w.pytorch()
			if err != nil {
				return err
			}
			b, ratios = append(b, y), append(ratios, x.ms/y.ms)
		}
		fmt.Fprintf(out, "| %s | %d | %.1f | %.1f |", w, w.threads, 1e3*float64(w.batch)/median(a, ms), median(a, ms))
		if there {
			slices.Sort(ratios)
			fmt.Fprintf(out, " %.1f | %.2f (%.2f, %.2f) | %.0f | %.0f | %.2f |\n", median(b, ms), ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1],
				median(a, mib), median(b, mib), median(a, mib)/median(b, mib))
		} else {
			fmt.Fprintf(out, " | | %.0f | | |\n", median(a, mib))
		}
	}
	return nil
}

func median[T any](s []T, of func(T) float64) float64 {
	var v []float64
	for _, x := range s {
		v = append(v, of(x))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// ours is the work in a process of its own.
func (w work) ours() (figures, error) {
	c, err := self("-one", w.model, "-threads", fmt.Sprint(w.threads), "-batch", fmt.Sprint(w.batch), "-tech", w.tech, "-steps", fmt.Sprint(w.steps), "-device", w.device)
	if err != nil {
		return figures{}, err
	}
	return measure(c)
}

// pytorch is the same work in PyTorch, in the set-up in which that is fastest.
func (w work) pytorch() (figures, error) {
	if strings.HasPrefix(w.model, "resnet") || strings.HasPrefix(w.model, "mobilenet") {
		w.tech += "+cl"
	}
	return measure(python(script, w.model, fmt.Sprint(w.threads), fmt.Sprint(w.batch), w.tech, fmt.Sprint(w.steps), w.device))
}

func measure(c *exec.Cmd) (f figures, err error) {
	out, err := output(c)
	if err == nil {
		_, err = fmt.Sscan(out, &f.ms, &f.mib)
	}
	return f, err
}

// self is this program.
func self(args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	return exec.Command(path, args...), err
}

func output(c *exec.Cmd) (string, error) {
	var out, fail bytes.Buffer
	c.Stdout, c.Stderr = &out, &fail
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(c.Args[:1], " "), errors.Join(err, errors.New(fail.String())))
	}
	return out.String(), nil
}

// python runs a script as PyTorch is fastest on a CPU: with OpenBLAS by OpenMP, so that one
// pool of threads serves everything, and tcmalloc, which keeps freed pages.
func python(script string, args ...string) *exec.Cmd {
	c := exec.Command("/usr/bin/python3", append([]string{"-c", script}, args...)...)
	const libs = "/usr/lib/x86_64-linux-gnu"
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libs+"/openblas-openmp", "TCMALLOC_RELEASE_RATE=0",
		"LD_PRELOAD="+libs+"/openblas-openmp/libblas.so.3:"+libs+"/libtcmalloc_minimal.so.4")
	// Processors that it does not know get kernels several times slower than they could.
	switch flags := cpuinfo("flags"); {
	case strings.Contains(flags, " avx512_bf16"):
		c.Env = append(c.Env, "OPENBLAS_CORETYPE=Cooperlake")
	case strings.Contains(flags, " avx512f"):
		c.Env = append(c.Env, "OPENBLAS_CORETYPE=SkylakeX")
	}
	return c
}
