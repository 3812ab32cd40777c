// Package run is what the example programs share around their training: flags, a clean
// stop, the status line and the closing table. How to train is in the examples.
package run

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/snug-ml/snug/memory"
)

// Main runs fn with the program's arguments, stops it cleanly on the first Ctrl-C and when
// its output cannot be written, and ends the process with what came of it.
func Main(fn func(ctx context.Context, args []string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	os.Exit(report(os.Stderr, heard(ctx, os.Stdout, func(ctx context.Context, out io.Writer) error { return fn(ctx, os.Args[1:], out) })))
}

// heard runs fn until what it writes to out gets lost, which is an error.
func heard(ctx context.Context, out io.Writer, fn func(ctx context.Context, out io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := &output{Writer: out, lost: cancel}
	if err := fn(ctx, o); o.err == nil {
		return err
	}
	return fmt.Errorf("the output: %w", o.err)
}

// output notes the first error.
type output struct {
	io.Writer
	lost func()
	err  error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = err
		o.lost()
	}
	return n, err
}

// report writes what went wrong, if anything did, and gives the exit code.
func report(w io.Writer, err error) int {
	var usage *UsageError
	var oom *memory.OutOfMemoryError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(w, "%v; -h lists the flags\n", err)
		return 2
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w, "stopped")
		return 130
	case errors.As(err, &oom):
		fmt.Fprint(w, oom.Report()) // begins with what the error says
		return 1
	}
	fmt.Fprintln(w, err)
	return 1
}
