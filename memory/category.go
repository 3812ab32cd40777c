package memory

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Category is what a block is for.
type Category int

const (
	Other Category = iota
	Parameters
	Gradients
	OptimizerState
	Buffers
	Inputs
	Activations // saved for backward or held by the program
	Flowing     // gradients on their way through backward
	Casts
	Workspace
	categories
)

var names = [categories]string{
	"other", "parameters", "gradients", "optimizer", "buffers", "inputs",
	"activations", "flowing gradients", "casts", "workspace",
}

func (c Category) String() string { return names[c] }

func (c Category) MarshalText() ([]byte, error) { return []byte(names[c]), nil }

func (c *Category) UnmarshalText(text []byte) error {
	i := slices.Index(names[:], string(text))
	if i < 0 {
		return fmt.Errorf("memory: no category %q", text)
	}
	*c = Category(i)
	return nil
}

// ByCategory is bytes, indexed by Category; in JSON an object without the empty ones.
type ByCategory [categories]int64

func (b ByCategory) MarshalJSON() ([]byte, error) {
	m := map[Category]int64{}
	for c, n := range b {
		if n != 0 {
			m[Category(c)] = n
		}
	}
	return json.Marshal(m)
}

func (b *ByCategory) UnmarshalJSON(text []byte) error {
	var m map[Category]int64
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	*b = ByCategory{}
	for c, n := range m {
		b[c] = n
	}
	return nil
}
