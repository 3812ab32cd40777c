package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// libraries are what gopeers has of each model, and how many steps it takes.
var libraries = map[string][]struct {
	name  string
	steps int
}{
	"mlp":      {{"gorgonia", 20}, {"gomlx", 3}},
	"resnet18": {{"gorgonia", 2}},
}

// goPeers prints steps beside those of other Go libraries, by the program in the module gopeers.
func goPeers(out io.Writer, t *table, only string) error {
	fmt.Fprint(out, "The same steps as above in gorgonia 0.9.18 and in GoMLX 0.26 with its backend in Go, as they come (their losses fall, too). GoMLX's XLA backend is left out: it wants a library that is no Go module.\n\n")
	dir, err := os.MkdirTemp("", "gopeers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "gopeers")
	if _, err := output(exec.Command("go", "-C", "internal/peers/gopeers", "build", "-o", program, ".")); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		fmt.Fprintln(out, "Not measured: the module internal/peers/gopeers could not be built.")
		return nil
	}
	fmt.Fprintln(out, "| work | threads | by | ms | times ours | MiB | times ours |\n| --- | --- | --- | --- | --- | --- | --- |")
	for _, w := range t.works {
		if !strings.Contains(t.row(w), only) {
			continue
		}
		type side struct {
			name string
			run  func() (figures, error)
			all  []figures
		}
		sides := []*side{{name: "this project", run: w.ours}, {name: "PyTorch", run: w.pytorch}}
		for _, l := range libraries[w.model] {
			sides = append(sides, &side{name: l.name, run: func() (figures, error) {
				return measure(exec.Command(program, l.name, w.model, fmt.Sprint(w.threads), fmt.Sprint(w.batch), fmt.Sprint(l.steps)))
			}})
		}
		for range t.turns {
			for _, s := range sides {
				f, err := s.run()
				if err != nil {
					return err
				}
				s.all = append(s.all, f)
			}
		}
		for _, s := range sides {
			fmt.Fprintf(out, "| %s | %d | %s | %.1f | %.2f | %.0f | %.2f |\n", w, w.threads, s.name,
				median(s.all, ms), median(s.all, ms)/median(sides[0].all, ms), median(s.all, mib), median(s.all, mib)/median(sides[0].all, mib))
		}
	}
	return nil
}
