package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/examples/internal/run"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/memory"
)

func TestTrainOnAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes in the plain loops that the race detector sees")
	}
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(strings.Repeat("größer als vorher\n", 60)), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := train(t.Context(), []string{"-text", path, "-epochs", "2", "-batch", "4", "-accumulate", "2"}, &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"epoch 2/2: held-back loss ", "\nperplexity ", "\npeak memory ", "\n\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	_, sample, _ := strings.Cut(b.String(), "\n\n") // after the table's rows come 400 characters
	if n := len([]rune(sample)); n < 400 {
		t.Errorf("a sample of %d characters in\n%s", n, b.String())
	}
}

// start learns a story on a device of its own and checks that nothing stays on it.
func start(t *testing.T, ctx context.Context, out io.Writer, f run.Flags) error {
	t.Helper()
	corpus, err := data.NewCorpus(story(40, 1), window, window)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	err = learn(ctx, dev, out, f, corpus, nil)
	if live := dev.Memory().Live(); live != "" {
		t.Errorf("after %v there stays\n%s", err, live)
	}
	return err
}

type cancels struct{ cancel func() }

func (c cancels) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "epoch 1/3: ") {
		c.cancel()
	}
	return len(b), nil
}

func TestEndsEarly(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes in the plain loops that the race detector sees")
	}
	f := run.Flags{Device: testdevice.Name, Epochs: 3, Batch: 8, Accumulate: 1, Seed: 1}
	ctx, cancel := context.WithCancel(t.Context())
	var b bytes.Buffer
	err := start(t, ctx, io.MultiWriter(&b, cancels{cancel}), f)
	if !errors.Is(err, context.Canceled) || !strings.Contains(b.String(), "\nepochs                          1\n") {
		t.Errorf("%v, want cancelled after one epoch\n%s", err, b.String())
	}

	f.Limit = 12 << 20 // for the parameters and Adam's state, but not for a step
	var oom *memory.OutOfMemoryError
	if err := start(t, t.Context(), io.Discard, f); !errors.As(err, &oom) {
		t.Errorf("%v, want out of memory", err)
	}

	f.Limit, f.Device = 0, testdevice.Dry
	b.Reset()
	if err := start(t, t.Context(), &b, f); err != nil || !strings.Contains(b.String(), "\npeak memory ") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestErrors(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte(strings.Repeat("ab", window/2+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"-text " + short + "no": short,
		"-text " + short:        "too short",
		"-epochs 0":             "-epochs is 0",
	} {
		if err := train(t.Context(), strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestStoryCountsRightly(t *testing.T) {
	text := story(200, 3)
	if n := strings.Count(text, "\n"); n != 100 || story(200, 3) != text || story(200, 4) == text {
		t.Errorf("%d lines; 100 wanted, the same for a seed and others for another", n)
	}
	number := map[string]int{}
	for i, w := range numbers {
		number[w] = i
	}
	for line := range strings.Lines(text) {
		w := strings.Fields(strings.NewReplacer(".", "", "\n", "").Replace(line))
		// The old king has five hens He gives two hens to the cat and keeps three
		has, gives, keeps := number[w[4]], number[w[8]], number[w[len(w)-1]]
		if has < 1 || gives < 1 || has-gives != keeps {
			t.Fatalf("%d less %d is not %d: %s", has, gives, keeps, line)
		}
	}
}

func TestDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	count := [3]int{}
	for range 3000 {
		count[draw([]float32{0, -100, 1.0986123}, 1, r)]++ // 1 to 3
	}
	if count[1] != 0 || count[0] < 650 || count[0] > 850 {
		t.Errorf("%v, about 750, 0 and 2250 wanted", count)
	}
}

// Every way has its row, the head's chunks too, and none is without effect.
func TestCompare(t *testing.T) {
	var b bytes.Buffer
	if err := train(t.Context(), []string{"-compare", "-batch", "4", "-device", testdevice.Dry}, &b); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(strings.ReplaceAll(b.String(), "\n ", " "), "result\n")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 17 || !strings.Contains(table, "\n-moments uint8 ") || !strings.Contains(table, "\n-chunked-head ") || strings.Count(table, "no values") != 17 {
		t.Errorf("%d lines:\n%s", len(lines), b.String())
	}
}
