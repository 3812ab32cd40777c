package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Looked says what a device needs, where that was looked for, and what was found.
func Looked() []string {
	return append([]string{build(), library(), kernelModule()}, libraries()...)
}

func looked() string { return strings.Join(Looked(), "; ") }

// library searches where the dynamic linker does; in a build with the tag cuda it was asked.
func library() string {
	const soname = "libcuda.so.1"
	if lib := os.Getenv("SNUG_CUDA_DRIVER"); lib != "" {
		if _, err := os.Stat(lib); err != nil {
			return fmt.Sprintf("the driver's library that SNUG_CUDA_DRIVER names: %v", err)
		}
		return "the driver's library: " + lib + ", which SNUG_CUDA_DRIVER names"
	}
	dirs := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	for _, pattern := range []string{"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if lib := filepath.Join(dir, soname); exists(lib) {
			return "the driver's library: " + lib
		}
	}
	return "no " + soname + " in " + strings.Join(dirs, ", ")
}

func kernelModule() string {
	const version = "/proc/driver/nvidia/version"
	text, err := os.ReadFile(version)
	if err != nil {
		if exists("/dev/dxg") {
			return "the driver is the Windows host's: /dev/dxg"
		}
		return "the driver's kernel module is not loaded: no " + version
	}
	line, _, _ := strings.Cut(string(text), "\n")
	nodes, _ := filepath.Glob("/dev/nvidia[0-9]*")
	return fmt.Sprintf("the driver's kernel module: %s; device files: %v", strings.TrimSpace(line), nodes)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
