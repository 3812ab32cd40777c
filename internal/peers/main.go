// Peers measures this project beside PyTorch: the same work with the same number of
// threads, each time in a fresh process, in turns; and the kernels by themselves. It needs
// Linux and what -install installs. PyTorch runs as it is fastest on a CPU: OpenBLAS with OpenMP, so that one pool
// of threads serves everything, tcmalloc, which keeps freed pages, channels last.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

//go:embed pytorch.py
var script []byte

// figures are of one process: the median step in milliseconds, and the MiB above the built
// model, before there is any state of an optimizer: resident ones or, on a card, those in
// the allocator's blocks.
type figures struct{ ms, mib float64 }

const packages = "python3-torch python3-torchvision libopenblas0-openmp libtcmalloc-minimal4"

const intro = `# Speed

` + "`make bench-peers` measures and writes this page." + ` Both sides do the same work with the same number of threads, each time in a fresh process, in turns; a time is the median of a process's steps, and a row shows the median of the processes and of the ratios within one turn, with the least and the greatest ratio. MiB are resident memory above the built model, at the peak. PyTorch (Debian's 1.13) runs as it is fastest on a CPU: OpenBLAS with OpenMP, tcmalloc, channels last for convolutions. A ratio below 1 is in this project's favour.

Measured %s on %s, %d threads, %s, %d turns.
`

// table is a list of works with a heading.
type table struct {
	name, title string
	works       []work
}

var tables = []table{
	{"steps", "Training steps, float32, SGD with momentum", nil},
	{"large", "Batch 64: training in bfloat16, and inference", nil},
	{"memory", "Batch 64: ways to save memory", nil},
}

// cards is the table of -device cuda:0 and its like.
var cards = []table{{"cuda", "Training steps on a card, SGD with momentum", nil}}

func init() {
	for _, threads := range []int{1, 2} {
		for _, w := range []work{{model: "mlp", batch: 128, steps: 100}, {model: "resnet18", batch: 32, steps: 4}, {model: "resnet50", batch: 4, steps: 4}, {model: "gpt", batch: 8, steps: 8}, {model: "mobilenet_v2", batch: 8, steps: 8}} {
			w.threads, w.tech, w.device = threads, "none", "cpu"
			tables[0].works = append(tables[0].works, w)
		}
	}
	for _, model := range []string{"resnet18", "gpt"} {
		for _, tech := range []string{"none", "bf16", "nograd"} {
			tables[1].works = append(tables[1].works, work{model, 2, 64, tech, 3, "cpu"})
		}
		for _, tech := range []string{"none", "ckpt", "accum", "bf16", "ckpt+bf16", "nograd"} {
			tables[2].works = append(tables[2].works, work{model, 2, 64, tech, 1, "cpu"})
		}
	}
	for _, w := range []work{{model: "resnet50", batch: 64, steps: 20}, {model: "gpt124m", batch: 8, steps: 10}} {
		w.threads = runtime.NumCPU()
		for _, w.tech = range []string{"none", "ckpt", "bf16", "ckpt+bf16", "nograd"} {
			cards[0].works = append(cards[0].works, w)
		}
	}
}

func main() {
	one := flag.String("one", "", "do this `model`'s work in this process and print its figures")
	var w work
	flag.IntVar(&w.threads, "threads", 2, "with -one")
	flag.IntVar(&w.batch, "batch", 32, "with -one")
	flag.StringVar(&w.tech, "tech", "none", "with -one")
	flag.IntVar(&w.steps, "steps", 5, "with -one")
	flag.StringVar(&w.device, "device", "cpu", "a `name` such as cuda:0 measures on a card in place of the processor")
	rounds := flag.Int("rounds", 5, "of each side, in turns")
	only := flag.String("only", "", "of the tables' rows, those whose `text` contains this")
	to := flag.String("o", "", "write to this `file`, too")
	install := flag.Bool("install", false, "install PyTorch and what it is fastest with (Debian)")
	flag.Parse()
	err := func() error {
		switch {
		case *install:
			return shell("apt-get update -qq && apt-get install -y -qq " + packages)
		case *one != "":
			w.model = *one
			f, err := w.run()
			fmt.Printf("%.3f %.1f\n", f.ms, f.mib)
			return err
		}
		out := io.Writer(os.Stdout)
		if *to != "" {
			f, err := os.Create(*to)
			if err != nil {
				return err
			}
			defer f.Close()
			out = io.MultiWriter(out, f)
		}
		if w.device != "cpu" {
			for i := range cards[0].works {
				cards[0].works[i].device = w.device
			}
			return compare(out, cards, *rounds, *only)
		}
		if err := compare(out, tables, *rounds, *only); err != nil || *only != "" {
			return err
		}
		return kernels(out)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func shell(command string) error {
	c := exec.Command("sh", "-c", command)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return c.Run()
}

// compare prints tables.
func compare(out io.Writer, tables []table, rounds int, only string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "*.py")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(script); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	ours := func(w work) *exec.Cmd {
		return exec.Command(self, "-one", w.model, "-threads", fmt.Sprint(w.threads), "-batch", fmt.Sprint(w.batch), "-tech", w.tech, "-steps", fmt.Sprint(w.steps), "-device", w.device)
	}
	there := true // PyTorch; on a card it may be missing
	if tables[0].name == cards[0].name {
		there = exec.Command("/usr/bin/python3", "-c", "import torch; assert torch.cuda.is_available()").Run() == nil
	}
	fmt.Fprintf(out, intro, time.Now().Format("2006-01-02"), strings.TrimSpace(cpuinfo("model name")), runtime.NumCPU(), runtime.Version(), rounds)
	for _, t := range tables {
		fmt.Fprintf(out, "\n## %s\n\n", t.title)
		fmt.Fprintln(out, "| work | threads | samples/s | ms | PyTorch's | ratio (least, most) | MiB | PyTorch's | ratio |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
		for _, w := range t.works {
			name := fmt.Sprintf("%s, batch %d", w.model, w.batch)
			if w.tech != "none" {
				name += ", " + w.tech
			}
			if !strings.Contains(fmt.Sprintf("%s: %s, %d", t.name, name, w.threads), only) {
				continue
			}
			var a, b []figures
			var ratios []float64
			for range rounds {
				x, err := measure(ours(w))
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				a = append(a, x)
				if !there {
					continue
				}
				y, err := measure(pytorch(file.Name(), w))
				if err != nil {
					return fmt.Errorf("%s, PyTorch: %w", name, err)
				}
				b, ratios = append(b, y), append(ratios, x.ms/y.ms)
			}
			ms := func(f figures) float64 { return f.ms }
			mib := func(f figures) float64 { return f.mib }
			fmt.Fprintf(out, "| %s | %d | %.1f | %.1f |", name, w.threads, 1e3*float64(w.batch)/median(a, ms), median(a, ms))
			if there {
				slices.Sort(ratios)
				fmt.Fprintf(out, " %.1f | %.2f (%.2f, %.2f) | %.0f | %.0f | %.2f |\n", median(b, ms), ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1],
					median(a, mib), median(b, mib), median(a, mib)/median(b, mib))
			} else {
				fmt.Fprintf(out, " | | %.0f | | |\n", median(a, mib))
			}
		}
	}
	return nil
}

func median(f []figures, of func(figures) float64) float64 {
	var v []float64
	for _, f := range f {
		v = append(v, of(f))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func measure(c *exec.Cmd) (f figures, err error) {
	var out, fail bytes.Buffer
	c.Stdout, c.Stderr = &out, &fail
	if err := c.Run(); err != nil {
		return f, errors.Join(err, errors.New(fail.String()))
	}
	_, err = fmt.Sscan(out.String(), &f.ms, &f.mib)
	return f, err
}

// pytorch is the command in the set-up in which PyTorch is fastest.
func pytorch(file string, w work) *exec.Cmd {
	if strings.HasPrefix(w.model, "resnet") || strings.HasPrefix(w.model, "mobilenet") {
		w.tech += "+cl"
	}
	c := exec.Command("/usr/bin/python3", file, w.model, fmt.Sprint(w.threads), fmt.Sprint(w.batch), w.tech, fmt.Sprint(w.steps), w.device)
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

// cpuinfo is what Linux says of the first processor.
func cpuinfo(key string) string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(b), key+"\t")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimLeft(line, "\t:")
}
