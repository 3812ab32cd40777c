// Package golden has reference values computed by PyTorch, for tests: families of cases,
// each with settings and tensors by role. testdata/generate.py, which wrote them, says
// what the roles are.
package golden

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snug-ml/snug/internal/safetensors"
)

//go:embed testdata/*.safetensors
var files embed.FS

// Family is one of ops, layers, losses, optim and models.
type Family struct {
	file     *safetensors.File
	cases    []string
	roles    map[string][]string
	settings map[string]map[string]any
}

// Tensor has its values in F where DType ("F32", "F64") is a float, and in I otherwise.
type Tensor struct {
	DType string
	Shape []int
	F     []float64
	I     []int64
}

// Load reads a family; a test that names one there is none of ends here.
func Load(t testing.TB, family string) *Family {
	t.Helper()
	f, err := load(family)
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	return f
}

func load(family string) (*Family, error) {
	b, err := files.ReadFile("testdata/" + family + ".safetensors")
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	f := &Family{file: file, roles: map[string][]string{}, settings: map[string]map[string]any{}}
	for _, name := range file.Names() {
		c, role, _ := strings.Cut(name, "/")
		if f.roles[c] == nil {
			f.cases = append(f.cases, c)
		}
		f.roles[c] = append(f.roles[c], role)
	}
	for c, text := range file.Metadata() {
		var s map[string]any
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("%s: settings of %s: %w", family, c, err)
		}
		f.settings[c] = s
	}
	return f, nil
}

// Cases are in the order in which they were generated.
func (f *Family) Cases() []string { return slices.Clone(f.cases) }

// Settings are a case's, as encoding/json reads them: numbers are float64. Empty or nil
// where it has none.
func (f *Family) Settings(c string) map[string]any { return f.settings[c] }

// Roles are those of a case, in the order in which they were generated.
func (f *Family) Roles(c string) []string { return slices.Clone(f.roles[c]) }

// Tensor reports whether the case has the role.
func (f *Family) Tensor(c, role string) (Tensor, bool) {
	name := c + "/" + role
	info, ok := f.file.Info(name)
	if !ok {
		return Tensor{}, false
	}
	t := Tensor{DType: info.DType, Shape: info.Shape}
	var err error
	if strings.Contains(info.DType, "F") {
		t.F, err = f.file.Float64s(name)
	} else {
		t.I, err = f.file.Int64s(name)
	}
	if err != nil {
		panic(err) // Load has checked the embedded file
	}
	return t, true
}
