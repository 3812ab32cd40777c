package snug_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/snug-ml/snug"

// level is where a package of this module stands; it imports lower ones only, and of its
// own level just what beside says.
func level(path string) int {
	first, _, _ := strings.Cut(path, "/")
	switch {
	case path == "":
		return 2
	case path == "memory":
		return 1
	case path == "internal/peers": // a program
		return 5
	case first == "internal":
		return 0
	case first == "train" || first == "plan":
		return 4
	case first == "examples" || first == "cmd":
		return 5
	}
	return 3
}

var beside = map[string][]string{
	"nn/models":          {"nn"},
	"interop":            {"nn", "optim"},
	"train":              {"plan"},
	"optest":             {"checkpoint"},
	"internal/host":      {"internal/driver", "internal/host/kern", "internal/host/par"},
	"internal/host/kern": {"internal/driver", "internal/host/par"},
	"internal/cuda":      {"internal/driver"},

	// Number formats and random numbers, which are not the backends' alone.
	"internal/safetensors": {"internal/driver"},
	"data":                 {"internal/driver"},
}

// internalUsers are who may import which internal package; the others are the root's.
var internalUsers = map[string][]string{
	"internal/safetensors": {"state", "interop", "internal/golden"},
	"internal/golden":      nil, // tests only
	"internal/testdevice":  {"optest"},
	"internal/term":        {"examples", "cmd"},
	"internal/join":        {"", "optim", "nn", "plan", "train"},
}

// The arrows between packages point one way, in every build and for every file but tests.
func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, i := range p.Imports {
			if i == "gorgonia.org/cu" && from != "internal/cuda" {
				t.Errorf("%s imports gorgonia.org/cu: only internal/cuda may", from)
			}
			to, ok := strings.CutPrefix(i, module)
			if to = strings.TrimPrefix(to, "/"); !ok || slices.Contains(beside[from], to) {
				continue
			}
			if users, named := internalUsers[to]; named {
				first, _, _ := strings.Cut(from, "/")
				if !slices.Contains(users, from) && !slices.Contains(users, first) {
					t.Errorf("%s imports %s", from, to)
				}
				continue
			}
			a, b := level(from), level(to)
			switch {
			case from == "internal/dry" && to == "memory":
			case strings.HasPrefix(from, "examples/") && strings.HasPrefix(to, "examples/internal/"):
			case b == 0 && from != "":
				t.Errorf("%s imports %s: backends are behind the root package", from, to)
			case b >= a:
				t.Errorf("%s imports %s: arrows point the other way", from, to)
			}
		}
	}
}
