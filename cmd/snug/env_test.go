package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const program = `#include <cuda.h>
#include <stdio.h>
int main(void) {
  int n = -1;
  printf("init %d", cuInit(0));
  printf(" count %d", cuDeviceGetCount(&n));
  printf(" %d", n);
  CUdevice d;
  printf(" get %d", cuDeviceGet(&d, 0));
  printf(" lacking %d", cuCtxSynchronize());
  printf(" %s", snug_cuda_lacking() ? snug_cuda_lacking() : "-");
  printf(" absent %s\n", snug_cuda_absent() ? snug_cuda_absent() : "-");
}
`

// oldDriver has less than cuda.h declares.
const oldDriver = `int cuInit(unsigned f) { return 0; }
int cuDeviceGetCount(int *n) { *n = 3; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
`

// What env writes is enough to build a program that starts with a driver, with one that
// lacks a function, with one that finds no card, and without any.
func TestEnv(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the CUDA backend is for Linux")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "a cache's"))
	t.Setenv("CGO_CFLAGS", "-O1")
	t.Setenv("CGO_LDFLAGS", "")
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} { // the second finds it there
		if err := env(out); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() || !strings.Contains(first.String(), " -O1'") {
		t.Errorf("%s%s", &first, &second)
	}
	shell := exec.Command("sh", "-c", `eval "$1" && go env CGO_CFLAGS`, "sh", first.String())
	if out, err := shell.Output(); err != nil || !strings.HasPrefix(string(out), `"-I`+os.Getenv("XDG_CACHE_HOME")) {
		t.Errorf("%v: %s", err, out)
	}
	dirs, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "snug", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	dir := t.TempDir()
	compile := func(source string, args ...string) string {
		t.Helper()
		file := filepath.Join(dir, "source.c")
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, args[0])
		cmd := exec.Command(cc, append([]string{"-o", out, file}, args[1:]...)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return out
	}
	exe := compile(program, "program", "-I"+dirs[0], "-L"+dirs[0], "-lcuda", "-ldl")
	old := compile(oldDriver, "old.so", "-shared", "-fPIC")
	none := compile("int cuInit(unsigned f) { return 100; }", "none.so", "-shared", "-fPIC")
	for _, c := range []struct{ driver, want string }{
		{old, "init 0 count 0 3 get 0 lacking 35 cuCtxSynchronize absent -"},
		{none, "init 0 count 0 0 get 100 lacking 100 - absent " + none + ": cuInit answers 100"},
		{filepath.Join(dir, "nowhere"), "init 0 count 0 0 get 100 lacking 100 - absent " + filepath.Join(dir, "nowhere") + ": cannot open"},
	} {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "SNUG_CUDA_DRIVER="+c.driver)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), c.want) {
			t.Errorf("%v: %s\nwant %s", err, out, c.want)
		}
	}
}
