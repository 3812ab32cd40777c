package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// kernels prints what the benchmarks of single kernels measure, on one thread.
func kernels(out io.Writer) error {
	fmt.Fprintf(out, "\n## Kernels\n\nGemmPeak is what one core multiplies and adds at most, without memory. One thread. Rows are named by the elements that they have.\n\n| kernel | time | rate |\n| --- | --- | --- |\n")
	c := exec.Command("go", "test", "-run", "^$", "-bench", ".", "-benchtime", "200ms", "./internal/host/...", ".")
	c.Stderr = os.Stderr
	b, err := c.Output()
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") || strings.Contains(f[0], "/T2") {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndex(name, "-"); i > 0 { // the number of processors
			name = name[:i]
		}
		rate := ""
		for i := 4; i+1 < len(f); i += 2 {
			switch f[i+1] {
			case "GFLOP/s", "GB/s", "MB/s", "ns/operation":
				rate += f[i] + " " + f[i+1] + " "
			}
		}
		fmt.Fprintf(out, "| %s | %s ns | %s|\n", name, f[2], rate)
	}
	return nil
}
