package cuda

import (
	"fmt"
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

func init() {
	register("attention", floats, driver.Kernel{Strided: true, Mixed: true, Run: attend})
	register("attention backward", floats, driver.Kernel{Strided: true, Mixed: true, Run: attendBackward, Workspace: func(a *driver.Args) int64 {
		return int64(a.In[4].Len() * a.In[4].Type.Size()) // Σ dy·o of each query
	}})
}

// attention are the words of struct Attention, of q, k, v [b h t d]. F: 1 for causal.
func attention(a *driver.Args) []uint64 {
	q, k := a.In[0].Shape, a.In[1].Shape
	scale := 1 / math.Sqrt(float64(max(1, q[3])))
	return []uint64{uint64(q[1]), uint64(q[2]), uint64(k[2]), uint64(q[3]), uint64(a.F[0]), f64bits(scale)}
}

// heads are the words of struct Heads.
func heads(a *driver.Array) []uint64 {
	w := []uint64{address(a.Data)}
	for _, s := range a.Strides {
		w = append(w, uint64(s))
	}
	return w
}

// attentionBlocks starts a kernel with a block for each 64 rows of a's heads and as many
// columns of their results as fit in its registers.
func attentionBlocks(a *driver.Args, kernel string, rows *driver.Array, params ...any) {
	columns, width := 64, rows.Shape[3]
	if width > 64 && rows.Type != driver.Float64 {
		columns = 128
	}
	blocks := rows.Shape[0] * rows.Shape[1] * ((rows.Shape[2] + 63) / 64) * max(1, (width+columns-1)/columns)
	if blocks > 0 {
		launch(a, "attention", fmt.Sprint(kernel, columns, suffixes[rows.Type]), line(blocks, 1), [3]int{256, 1, 1}, 0,
			append([]any{attention(a)}, params...)...)
	}
}

// attend: q, k, v; writes o [b h t d] and log Σ exp of each row of scores [b h t].
func attend(a *driver.Args) {
	attentionBlocks(a, "attention", &a.In[0], heads(&a.In[0]), heads(&a.In[1]), heads(&a.In[2]), heads(&a.Out[0]), &a.Out[1])
}

// attendBackward: q, k, v, o, log Σ exp, dy; writes dq, dk, dv.
func attendBackward(a *driver.Args) {
	q, k, v, dy, sums := heads(&a.In[0]), heads(&a.In[1]), heads(&a.In[2]), heads(&a.In[5]), &a.In[4]
	if n := sums.Len(); n > 0 {
		launch(a, "attention", "attentioninner"+suffixes[a.In[0].Type], line(n, 16), [3]int{256, 1, 1}, 0,
			attention(a), heads(&a.In[3]), dy, n, a.Work)
	}
	attentionBlocks(a, "attentionq", &a.In[0], q, k, v, dy, sums, a.Work, heads(&a.Out[0]))
	attentionBlocks(a, "attentionkv", &a.In[1], q, k, v, dy, sums, a.Work, heads(&a.Out[1]), heads(&a.Out[2]))
}
