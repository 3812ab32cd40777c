// Peers measures this project beside PyTorch and other Go libraries: the same work with the
// same number of threads, each time in a fresh process, in turns; and the kernels by
// themselves, beside what the machine can do. It runs in the module's folder, on Linux, and
// needs what -install installs.
package main

import (
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

const packages = "python3-torch python3-torchvision libopenblas0-openmp libtcmalloc-minimal4"

// table is a section of docs/speed.md.
type table struct {
	name, title string
	turns       int // 0: the table has none
	write       func(out io.Writer, t *table, only string) error
	works       []work
}

var tables = []table{
	{"steps", "Training steps, float32, SGD with momentum", 3, steps, nil},
	{"memory", "Batch 64: inference, bfloat16, and other ways to save memory", 1, steps, nil},
	{"go", "Other Go libraries", 1, goPeers, nil},
	{"single", "Single operations", 3, single, nil},
	{"kernels", "Kernels", 0, kernels, nil},
}

// cards is the table of -device cuda:0 and its like.
var cards = []table{{"cuda", "Training steps on a card, SGD with momentum", 5, steps, nil}}

func init() {
	for _, threads := range []int{1, 2} {
		for _, w := range []work{{model: "mlp", batch: 128, steps: 100}, {model: "resnet18", batch: 32, steps: 4}, {model: "resnet50", batch: 4, steps: 4}, {model: "gpt", batch: 8, steps: 8}, {model: "mobilenet_v2", batch: 8, steps: 8}} {
			w.threads, w.tech, w.device = threads, "none", "cpu"
			tables[0].works = append(tables[0].works, w)
		}
	}
	for _, model := range []string{"resnet18", "gpt"} {
		for _, tech := range []string{"none", "ckpt", "accum", "bf16", "ckpt+bf16", "nograd"} {
			tables[1].works = append(tables[1].works, work{model, 2, 64, tech, 3, "cpu"})
		}
	}
	tables[2].works = []work{{"mlp", 2, 128, "none", 20, "cpu"}, {"resnet18", 2, 32, "none", 4, "cpu"}}
	for _, w := range []work{{model: "resnet50", batch: 64, steps: 20}, {model: "gpt124m", batch: 8, steps: 10}} {
		w.threads = runtime.NumCPU()
		for _, w.tech = range []string{"none", "ckpt", "bf16", "ckpt+bf16", "nograd"} {
			cards[0].works = append(cards[0].works, w)
		}
	}
}

func main() {
	one := flag.String("one", "", "do this `model`'s work in this process and print its figures; operations: measure single ones")
	var w work
	flag.IntVar(&w.threads, "threads", 2, "with -one")
	flag.IntVar(&w.batch, "batch", 32, "with -one")
	flag.StringVar(&w.tech, "tech", "none", "with -one")
	flag.IntVar(&w.steps, "steps", 5, "with -one")
	flag.StringVar(&w.device, "device", "cpu", "a `name` such as cuda:0 measures on a card in place of the processor")
	turns := flag.Int("rounds", 0, "turns of each side, if not the tables' own number")
	only := flag.String("only", "", "of the tables' rows, those whose `text` contains this; the tables are steps, memory, go, single, kernels")
	to := flag.String("o", "", "write whole tables into the page in this `file`, in place of those of the same headings")
	install := flag.Bool("install", false, "install PyTorch and what it is fastest with (Debian)")
	flag.Parse()
	err := func() error {
		switch {
		case *install:
			return shell("apt-get update -qq && apt-get install -y -qq " + packages)
		case *one == "operations":
			return operations(w.threads)
		case *one != "":
			w.model = *one
			f, err := w.run()
			fmt.Printf("%.3f %.1f\n", f.ms, f.mib)
			return err
		}
		which := tables
		if w.device != "cpu" {
			which = cards
			for i := range cards[0].works {
				cards[0].works[i].device = w.device
			}
		}
		if err := anyRow(which, *only); err != nil {
			return err
		}
		for i := range which {
			t := &which[i]
			if *turns > 0 && t.turns > 0 {
				t.turns = *turns
			}
			rows := 0
			for _, row := range t.rows() {
				if strings.Contains(row, *only) {
					rows++
				}
			}
			if rows == 0 {
				continue
			}
			if *to != "" && rows < len(t.rows()) {
				return fmt.Errorf("-only %q leaves rows of the table %s out, and -o wants whole tables", *only, t.name)
			}
			text := &strings.Builder{}
			out := io.MultiWriter(os.Stdout, text)
			fmt.Fprintf(os.Stdout, "\n## %s\n\n", t.title)
			fmt.Fprintf(out, "Measured %s on %s, %d processors, %s", time.Now().Format("2006-01-02"), strings.TrimSpace(cpuinfo("model name")), runtime.NumCPU(), runtime.Version())
			if t.turns > 0 {
				fmt.Fprintf(out, ", turns: %d", t.turns)
			}
			fmt.Fprint(out, ".\n\n")
			if err := t.write(out, t, *only); err != nil {
				return err
			}
			if *to != "" {
				if err := intoPage(*to, t.title, text.String()); err != nil {
					return err
				}
			}
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// anyRow is an error where -only chooses nothing.
func anyRow(tables []table, only string) error {
	var all []string
	for i := range tables {
		all = append(all, tables[i].rows()...)
	}
	if slices.ContainsFunc(all, func(row string) bool { return strings.Contains(row, only) }) {
		return nil
	}
	return fmt.Errorf("-only %q: no row has that; there are\n  %s", only, strings.Join(all, "\n  "))
}

// rows are what -only chooses from.
func (t *table) rows() []string {
	if t.works == nil {
		return []string{t.name + ":"}
	}
	var v []string
	for _, w := range t.works {
		v = append(v, t.row(w))
	}
	return v
}

func (t *table) row(w work) string { return fmt.Sprintf("%s: %s, %d", t.name, w, w.threads) }

// intoPage replaces the section of that heading, or adds it at the end.
func intoPage(file, title, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const mark = "\n## "
	sections := strings.Split(strings.TrimRight(string(page), "\n")+"\n", mark)
	text = title + "\n\n" + strings.TrimRight(text, "\n") + "\n"
	at := slices.IndexFunc(sections, func(s string) bool {
		heading, _, _ := strings.Cut(s, "\n")
		return heading == title
	})
	if at < 0 {
		sections = append(sections, text)
	} else {
		sections[at] = text
	}
	return os.WriteFile(file, []byte(strings.Join(sections, mark)), 0o644)
}

func shell(command string) error {
	c := exec.Command("sh", "-c", command)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return c.Run()
}

// cpuinfo is what Linux says of the first processor.
func cpuinfo(key string) string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(b), key+"\t")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimLeft(line, "\t:")
}
