package host

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Limit is how many bytes the CPU device may reserve where nobody said: the smallest of
// what the system has available and what each control group from this process's up to
// the root still allows, less a margin.
func Limit() (int64, error) { return limitIn(os.DirFS("/")) }

func limitIn(root fs.FS) (int64, error) {
	info, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	available, ok := statField(string(info), "MemAvailable:")
	if !ok || available > math.MaxInt64/1024 {
		return 0, errors.New("host: /proc/meminfo has no MemAvailable")
	}
	available *= 1024
	if groups, err := fs.ReadFile(root, "proc/self/cgroup"); err == nil { // a kernel may have none
		unified, memory := cgroups(string(groups))
		available = min(available,
			headroom(root, "sys/fs/cgroup", unified, "memory.max", "memory.current", "inactive_file"),
			headroom(root, "sys/fs/cgroup/memory", memory, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
	}
	return lessMargin(available)
}

// statField is the number after a name at the beginning of a line.
func statField(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return byteCount(f[1])
		}
	}
	return 0, false
}

func byteCount(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n >= 0
}

// cgroups are the paths in /proc/self/cgroup: of version 2, and of version 1's memory.
func cgroups(text string) (unified, memory string) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if controllers == "" {
			unified = path
		}
		for c := range strings.SplitSeq(controllers, ",") {
			if c == "memory" {
				memory = path
			}
		}
	}
	return unified, memory
}

// headroom is the least that a group, or one above it, still allows. Pages of files that
// nobody uses count as free, since the kernel takes them first. In a container the path
// may be that of the host: what does not exist is passed over, up to the mount itself.
func headroom(root fs.FS, mount, group, limit, current, inactive string) int64 {
	least := int64(math.MaxInt64)
	for group = path.Join("/", group); ; group = path.Dir(group) {
		read := func(name string) string {
			text, _ := fs.ReadFile(root, path.Join(mount, group, name))
			return string(text)
		}
		if most, ok := byteCount(read(limit)); ok { // else "max", or no such group
			used, _ := byteCount(read(current))
			cache, _ := statField(read("memory.stat"), inactive)
			least = min(least, max(0, most-max(0, used-cache)))
		}
		if group == "/" {
			return least
		}
	}
}
