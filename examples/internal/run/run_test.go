package run

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
)

func TestExitCodeAndMessage(t *testing.T) {
	oom := &memory.OutOfMemoryError{Requested: 4096, Cause: memory.Limited, Limit: 1024, DeviceLimit: 1 << 20}
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{flag.ErrHelp, 0, ""},
		{&UsageError{"-batch is 0, 1 or more wanted"}, 2, "-batch is 0, 1 or more wanted; -h lists the flags\n"},
		{fmt.Errorf("train: %w", context.Canceled), 130, "stopped\n"},
		{fmt.Errorf("train: %w", oom), 1, "raise the limit"},
		{errors.New("data: mnist: no such folder"), 1, "data: mnist: no such folder\n"},
	} {
		var b bytes.Buffer
		if code := report(&b, c.err); code != c.code || !strings.Contains(b.String(), c.text) || (c.text == "") != (b.Len() == 0) {
			t.Errorf("%v: code %d, %q; want %d, %q", c.err, code, b.String(), c.code, c.text)
		}
	}
}

// What cannot be written stops the program, and it says so.
func TestOutputLost(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errors.New("nobody reads"))
	err := heard(t.Context(), w, func(ctx context.Context, out io.Writer) error {
		fmt.Fprintln(out, "a line")
		return ctx.Err()
	})
	var b bytes.Buffer
	if code := report(&b, err); code != 1 || b.String() != "the output: nobody reads\n" {
		t.Errorf("code %d, %q", code, b.String())
	}
	if err := heard(t.Context(), io.Discard, func(context.Context, io.Writer) error { return io.EOF }); err != io.EOF {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	parse := func(args ...string) (Flags, string, error) {
		f, out := Flags{Epochs: 2, Batch: 8, MomentTypes: []string{"uint8"}, LargeHead: true}, &bytes.Buffer{}
		fs := flag.NewFlagSet("example", flag.ContinueOnError)
		f.Register(fs)
		err := f.Parse(fs, args, out)
		return f, out.String(), err
	}
	f, _, err := parse("-batch", "10", "-accumulate", "4", "-limit", "1.5MiB", "-device", testdevice.Dry)
	if want := (Flags{Device: testdevice.Dry, Epochs: 2, Batch: 10, Accumulate: 4, Seed: 1, Limit: 3 << 19, MomentTypes: f.MomentTypes, LargeHead: true}); err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, %v; want %+v", f, err, want)
	}
	if f.Micro() != 3 || !f.Dry() {
		t.Errorf("micro-batches of %d, dry %v; want 3, true", f.Micro(), f.Dry())
	}
	for _, c := range []struct{ args, text string }{
		{"-no", "-no"},
		{"-batch x", "x"},
		{"-batch 0", "-batch is 0, 1 or more wanted"},
		{"-epochs -1", "-epochs is -1"},
		{"-threads -1", "-threads is -1, 0 or more wanted"},
		{"-accumulate 9", "a batch of 8 samples has not so many parts"},
		{"-limit much", "such as 512MiB"},
		{"-limit NaN", "such as 512MiB"},
		{"-limit -1GiB", "such as 512MiB"},
		{"-limit 1e30", "such as 512MiB"},
		{"-checkpoint -1", "-checkpoint is -1, 0 or more wanted"},
		{"-keep 1MiB", "-keep is for what -checkpoint recomputes"},
		{"-offload-to /tmp", "-offload-to is where -offload moves to"},
		{"-autocast int8", "-autocast int8: bfloat16 or float16 wanted"},
		{"-moments bfloat16", "-moments bfloat16: uint8 wanted"},
		{"more", `unexpected argument "more"`},
	} {
		_, out, err := parse(strings.Fields(c.args)...)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%s: %v, output %q; want a usage error with %q", c.args, err, out, c.text)
		}
	}
	if _, out, err := parse("-h"); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out, "-accumulate") {
		t.Errorf("-h: %v, %q", err, out)
	}
}

// clock moves by hand.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func status(t *testing.T, w io.Writer, width int, every time.Duration) (*Status, *clock) {
	t.Helper()
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	c := &clock{time.Unix(1000, 0)}
	s := NewStatus(w, d, 1000)
	s.now, s.width, s.every, s.start, s.shown = c.now, func() int { return width }, every, c.t, c.t
	return s, c
}

func figures() (string, error) { return "loss 1.5", nil }

func TestPlainStatusLines(t *testing.T) {
	var b bytes.Buffer
	s, c := status(t, &b, 0, 5*time.Second)
	s.Phase("epoch 1/2")
	for range 10 {
		c.t = c.t.Add(time.Second)
		if err := s.Add(20, figures); err != nil {
			t.Fatal(err)
		}
	}
	s.Say("epoch 1/2: %s", "done")
	s.Clear()
	want := "epoch 1/2  loss 1.5  0 B, peak 0 B  45s left  20 samples/s\n" +
		"epoch 1/2  loss 1.5  0 B, peak 0 B  40s left  20 samples/s\n" +
		"epoch 1/2: done\n"
	if b.String() != want {
		t.Errorf("%q\nwant %q", b.String(), want)
	}
}

// On a terminal the line is written over, never wraps, and leaves nothing behind.
func TestTerminalStatusLine(t *testing.T) {
	var b bytes.Buffer
	s, c := status(t, &b, 24, time.Second)
	s.Phase("epoch 1/2")
	for range 2 {
		c.t = c.t.Add(time.Second)
		if err := s.Add(20, figures); err != nil {
			t.Fatal(err)
		}
	}
	s.Say("done")
	want := strings.Repeat("\r\x1b[Kepoch 1/2  loss 1.5  0 ", 2) + "\r\x1b[Kdone\n"
	if b.String() != want {
		t.Errorf("%q\nwant %q", b.String(), want)
	}
}

func TestStatusGivesAnError(t *testing.T) {
	s, _ := status(t, io.Discard, 0, 0)
	failed := errors.New("failed")
	if err := s.Add(1, func() (string, error) { return "", failed }); err != failed {
		t.Errorf("%v, want %v", err, failed)
	}
}

func TestTable(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Infer(context.Background(), func(s *snug.Scope) error {
		snug.Upload(s, make([]float32, 1024), 1024)
		return s.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	Table(&b, d, Row{"test accuracy", Percent(0.5)}, Row{"training", Seconds(1500 * time.Millisecond)})
	want := `
test accuracy             50.00 %
training                    1.5 s
peak memory               4.0 KiB
  inputs                  4.0 KiB
`
	if b.String() != want {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
}
