package host

import (
	"errors"
	"testing"
	"testing/fstest"
)

// files is a tree of files of the system's.
func files(of map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range of {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestLimit(t *testing.T) {
	const gib = 1 << 30
	const meminfo = "MemTotal: 33554432 kB\nMemFree: 1024 kB\nMemAvailable:   16777216 kB\n" // 16 GiB
	tests := []struct {
		name string
		fs   map[string]string
		want int64 // before the margin
	}{
		{"no control groups", map[string]string{}, 16 * gib},
		{"version 2 without limit", map[string]string{
			"proc/self/cgroup": "0::/user.slice\n", "sys/fs/cgroup/user.slice/memory.max": "max\n"}, 16 * gib},
		{"version 2", map[string]string{
			"proc/self/cgroup":                        "0::/user.slice/job\n",
			"sys/fs/cgroup/user.slice/job/memory.max": "8589934592\n", "sys/fs/cgroup/user.slice/job/memory.current": "1073741824\n"}, 7 * gib},
		{"version 2, tighter above", map[string]string{
			"proc/self/cgroup":                        "0::/user.slice/job\n",
			"sys/fs/cgroup/user.slice/job/memory.max": "8589934592\n", "sys/fs/cgroup/user.slice/job/memory.current": "1073741824\n",
			"sys/fs/cgroup/user.slice/memory.max": "8589934592\n", "sys/fs/cgroup/user.slice/memory.current": "4294967296\n"}, 4 * gib},
		{"version 2, cached files do not count", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "4294967296\n", "sys/fs/cgroup/memory.current": "4294967296\n",
			"sys/fs/cgroup/memory.stat": "anon 1073741824\nactive_file 1\ninactive_file 3221225472\n"}, 3 * gib},
		{"version 2, a container with the host's path", map[string]string{
			"proc/self/cgroup":         "0::/../../docker/abc\n",
			"sys/fs/cgroup/memory.max": "2147483648\n", "sys/fs/cgroup/memory.current": "0\n"}, 2 * gib},
		{"version 1", map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/c\n4:memory:/job\n1:name=systemd:/s\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "3221225472\n", "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/job/memory.stat":       "inactive_file 5\ntotal_inactive_file 1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n"}, 2 * gib},
		{"both versions", map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n0::/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "6442450944\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "0\n",
			"sys/fs/cgroup/x/memory.max":                 "5368709120\n",
			"sys/fs/cgroup/x/memory.current":             "0\n"}, 5 * gib},
	}
	for _, tt := range tests {
		root := files(tt.fs)
		root["proc/meminfo"] = &fstest.MapFile{Data: []byte(meminfo)}
		got, err := limitIn(root)
		if want := tt.want - tt.want/8; err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", tt.name, got, err, want)
		}
	}
}

func TestLimitNothingLeft(t *testing.T) {
	full := files(map[string]string{
		"proc/meminfo": "MemAvailable: 16777216 kB\n", "proc/self/cgroup": "0::/\n",
		"sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.current": "1073741824\n"})
	if n, err := limitIn(full); !errors.Is(err, errNoMemory) {
		t.Errorf("%d, %v", n, err)
	}
	for _, text := range []string{"", "MemAvailable:\n", "MemAvailable: x kB\n", "MemAvailable: 9223372036854775807 kB\n"} {
		if n, err := limitIn(files(map[string]string{"proc/meminfo": text})); err == nil {
			t.Errorf("%q gives %d", text, n)
		}
	}
	if n, err := limitIn(files(nil)); err == nil {
		t.Errorf("no /proc gives %d", n)
	}
}

func TestLimitHere(t *testing.T) {
	n, err := Limit()
	if err != nil || n <= 0 {
		t.Fatal(n, err)
	}
	t.Logf("%d MiB", n>>20)
}

// Whatever the files hold, a limit is between 0 and what the system has available.
func FuzzLimit(f *testing.F) {
	f.Add("MemAvailable: 1048576 kB\n", "0::/a/b\n4:memory:/c\n", "max\n", "12\n", "inactive_file 4\n")
	f.Add("MemAvailable: 1048576 kB\n", "0::/../a\n", "1073741824\n", "9223372036854775807\n", "inactive_file -4\n")
	f.Fuzz(func(t *testing.T, meminfo, groups, most, used, stat string) {
		root := files(map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": groups})
		for _, dir := range []string{"sys/fs/cgroup/", "sys/fs/cgroup/a/", "sys/fs/cgroup/memory/c/"} {
			root[dir+"memory.max"] = &fstest.MapFile{Data: []byte(most)}
			root[dir+"memory.limit_in_bytes"] = root[dir+"memory.max"]
			root[dir+"memory.current"] = &fstest.MapFile{Data: []byte(used)}
			root[dir+"memory.usage_in_bytes"] = root[dir+"memory.current"]
			root[dir+"memory.stat"] = &fstest.MapFile{Data: []byte(stat)}
		}
		n, err := limitIn(root)
		available, _ := statField(meminfo, "MemAvailable:")
		if (err == nil) != (n > 0) || n > available*1024 {
			t.Errorf("%d of %d KiB, %v", n, available, err)
		}
	})
}
