package main

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// What cgo needs in place of a CUDA toolkit: declarations of the driver's functions, and
// the trampolines that are linked in place of the driver.
//
//go:embed cuda
var files embed.FS

// env writes the header and the library libcuda.a to the user's cache and prints the
// settings under which cgo finds them.
func env(w io.Writer) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the CUDA backend is for Linux, not for %s", runtime.GOOS)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	sum := sha256.New()
	names := []string{"cuda.h", "functions.h", "driver.c"}
	for _, name := range names {
		text, err := files.ReadFile("cuda/" + name)
		if err != nil {
			return err
		}
		sum.Write(text)
	}
	dir := filepath.Join(cache, "snug", fmt.Sprintf("cuda-%s-%.8x", runtime.GOARCH, sum.Sum(nil)))
	if _, err := os.Stat(filepath.Join(dir, "libcuda.a")); err != nil {
		if err := build(dir, names); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "export CGO_ENABLED=1")
	for _, v := range [][2]string{
		{"CGO_CFLAGS", quote("-I" + dir)},
		{"CGO_LDFLAGS", quote("-L"+dir) + " -ldl"},
	} {
		name, flags := v[0], v[1]
		had, err := output("go", "env", name)
		if err != nil {
			return err
		}
		if !strings.Contains(had, flags) { // the eval is not the first one
			had = strings.TrimSpace(flags + " " + had)
		}
		fmt.Fprintf(w, "export %s='%s'\n", name, strings.ReplaceAll(had, "'", `'\''`))
	}
	return nil
}

// build fills dir all at once: another process may be doing the same.
func build(dir string, names []string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, name := range names {
		text, err := files.ReadFile("cuda/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(tmp, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	cc, err := output("go", "env", "CC")
	if err != nil {
		return err
	}
	object := filepath.Join(tmp, "driver.o")
	compile := append(strings.Fields(cc), "-O2", "-fPIC", "-c", filepath.Join(tmp, "driver.c"), "-o", object)
	if _, err := output(compile[0], compile[1:]...); err != nil {
		return fmt.Errorf("cgo needs a C compiler: %w", err)
	}
	if _, err := output("ar", "rcs", filepath.Join(tmp, "libcuda.a"), object); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(filepath.Join(dir, "libcuda.a")); there != nil {
			return err
		}
	}
	return nil
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w: %s", name, err, e.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// quote is for a list of flags that the go command splits: it knows two kinds of quotes and
// no escapes.
func quote(flag string) string {
	switch {
	case strings.Contains(flag, "'"):
		return `"` + flag + `"`
	case strings.ContainsAny(flag, " \t\""):
		return "'" + flag + "'"
	}
	return flag
}
