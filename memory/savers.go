package memory

import (
	"cmp"
	"slices"
)

// Saver is a way to need less memory that this project has, by the name that a program
// would use, and about how much it would have freed at this moment.
type Saver struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// shares are how much of a category's bytes a saver frees: the least that docs/memory.md
// has for the convolutional models and the GPT, rounded down.
var shares = []struct {
	category Category
	percent  int64
	name     string
}{
	{Activations, 75, "a quarter of the batch at a time, accumulated by optim.Window"},
	{Activations, 45, "amp.Autocast(snug.BFloat16)"},
	{Activations, 35, "checkpoint.Every(1)"},
	{Activations, 15, "offload.Activations"},
	{Gradients, 60, "Window.BackwardStep"},
	{OptimizerState, 70, "optim.AdamWConfig{StateDType: snug.Uint8}"},
}

// savers are those that would have freed at least a hundredth of what was asked for.
func savers(c ByCategory, asked int64, of Category) []Saver {
	c[of] += asked // it would have been there
	var l []Saver
	for _, s := range shares {
		if n := c[s.category] / 100 * s.percent; n > 0 && n >= asked/100 {
			l = append(l, Saver{s.name, n})
		}
	}
	slices.SortStableFunc(l, func(a, b Saver) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return l
}
