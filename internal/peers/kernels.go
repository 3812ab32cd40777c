package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// kernels prints what the benchmarks of single kernels measure, and how much of what the
// machine can do that is.
func kernels(out io.Writer, _ *table, _ string) error {
	fmt.Fprint(out, `One pass of the benchmarks of single kernels. The limits are GemmPeak, what one core multiplies and adds at most, without memory, and for what is named Memory the best of the machine's own loops over 64 MiB arrays (of one or two reads and a write), on as many threads; a share is of the nearer limit. Convolutions count the direct way's products, so that Winograd's can be above it. What updates in place, as Adam does, reads nothing for its stores and can be above it, too. Rows of elements are in cache.

| kernel | threads | time | rate | of the limit |
| --- | --- | --- | --- | --- |
`)
	var memory [3]float64 // by threads, in GB/s
	for _, threads := range []int{1, 2} {
		for i, rate := range bandwidths(threads) {
			memory[threads] = max(memory[threads], rate)
			fmt.Fprintf(out, "| machine: %s | %d | %.3g ms | %.1f GB/s | |\n", streams[i].name, threads, float64(streams[i].bytes*streamLen)/rate/1e6, rate)
		}
	}
	all, err := benchmarks("./internal/host/...", ".")
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(k benchmark) bool { return k.name == "GemmPeak" })
	if at < 0 {
		return errors.New("no benchmark GemmPeak")
	}
	peak := all[at].gflops
	for _, k := range all {
		var rates []string
		share := 0.0
		if k.gflops > 0 {
			rates, share = append(rates, fmt.Sprintf("%.4g GFLOP/s", k.gflops)), k.gflops/peak
			if strings.Contains(k.name, "float64") {
				share *= 2
			}
		}
		if k.gbytes > 0 {
			rates = append(rates, fmt.Sprintf("%.4g GB/s", k.gbytes))
		}
		if k.memory() {
			share = k.gbytes / memory[k.threads]
		}
		if k.operation > 0 {
			rates = append(rates, fmt.Sprintf("%.4g ns/operation", k.operation))
		}
		limit := ""
		if share > 0 {
			limit = fmt.Sprintf("%.0f %%", 100*share)
		}
		fmt.Fprintf(out, "| %s | %d | %s ns | %s | %s |\n", k.name, k.threads, k.ns, strings.Join(rates, ", "), limit)
	}
	return nil
}

// benchmark is a line that go test printed.
type benchmark struct {
	name                      string
	threads                   int // what it says, or 1
	ns                        string
	gflops, gbytes, operation float64
}

func (k *benchmark) memory() bool { return strings.HasPrefix(k.name, "Memory/") }

// benchmarks runs all but those of two threads, which change what memory gives and little
// else: Memory's names are shorter by one part than those that are skipped.
func benchmarks(packages ...string) (all []benchmark, err error) {
	c := exec.Command("go", append([]string{"test", "-run", "^$", "-bench", ".", "-skip", "///T2", "-benchtime", "100ms"}, packages...)...)
	c.Stderr = os.Stderr
	b, err := c.Output()
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		k := benchmark{name: strings.TrimPrefix(f[0], "Benchmark"), threads: 1, ns: f[2]}
		if i := strings.LastIndex(k.name, "-"); i > 0 { // the number of processors
			k.name = k.name[:i]
		}
		if i := strings.LastIndex(k.name, "/T"); i > 0 {
			if n, err := strconv.Atoi(k.name[i+2:]); err == nil {
				k.name, k.threads = k.name[:i], n
			}
		}
		for i := 4; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, err
			}
			switch f[i+1] {
			case "GFLOP/s":
				k.gflops = v
			case "GB/s":
				k.gbytes = v
			case "MB/s":
				k.gbytes = v / 1e3
			case "ns/operation":
				k.operation = v
			}
		}
		all = append(all, k)
	}
	return all, nil
}
