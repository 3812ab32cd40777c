package snug_test

import (
	"context"
	"errors"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
	"github.com/snug-ml/snug/optest"
)

func TestCat(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:      "cat",
		F:         func(x ...*snug.Tensor) *snug.Tensor { return snug.Cat(1, x...) },
		Shapes:    [][][]int{{{2, 3, 4}, {2, 1, 4}, {2, 2, 4}}, {{3, 2}}, {{2, 0}, {2, 1}}, {{0, 2}, {0, 3}}},
		Large:     [][]int{{40, 500}, {40, 600}},
		Reference: golden(t, "ops", "cat_dim1"),
	})
	optest.Run(t, optest.Op{
		Name:   "stack",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return snug.Stack(-1, x...) },
		Shapes: [][][]int{{{2, 3}, {2, 3}, {2, 3}}, {{}, {}}, {{0}, {0}}},
	})
	optest.Run(t, optest.Op{
		Name: "split",
		F: func(x ...*snug.Tensor) *snug.Tensor {
			p := x[0].Split(1, 2, 1, 0, 2)
			return p[0].Mul(p[3]).Add(p[1]).Add(p[2].Sum())
		},
		Shapes: [][][]int{{{3, 5}}, {{2, 5, 1}}, {{0, 5}}},
	})
	optest.Run(t, optest.Op{
		Name:   "chunk",
		F:      func(x ...*snug.Tensor) *snug.Tensor { p := x[0].Chunk(-1, 3); return p[0].Mul(p[1]).Sub(p[2]) },
		Shapes: [][][]int{{{2, 6}}, {{3}}, {{2, 0}}},
	})
	optest.Run(t, optest.Op{
		Name:   "squeeze and unsqueeze",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Squeeze(1).Unsqueeze(0).Unsqueeze(-1) },
		Shapes: [][][]int{{{2, 1, 3}}, {{4, 1}}, {{0, 1, 2}}},
	})
	optest.Run(t, optest.Op{
		Name:   "squeeze all",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Squeeze() },
		Shapes: [][][]int{{{2, 1, 3, 1}}, {{1, 1}}, {{}}},
	})
}

func TestGather(t *testing.T) {
	optest.Run(t, optest.Op{
		Name:   "index select",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].IndexSelect(1, x[1]) },
		Shapes: [][][]int{{{2, 3, 4}, {5}}, {{3, 4}, {2}}, {{2, 3, 70}, {4}}, {{2, 3}, {0}}, {{0, 3}, {2}}, {{2, 3, 0}, {2}}},
		Inputs: []optest.Input{{}, optest.Below(3)},
		Large:  [][]int{{20, 30, 90}, {50}},
	})
	optest.Run(t, optest.Op{
		Name:   "gather",
		F:      func(x ...*snug.Tensor) *snug.Tensor { return x[0].Gather(1, x[1]) },
		Shapes: [][][]int{{{2, 3, 4}, {2, 5, 4}}, {{3, 4}, {3, 1}}, {{2, 3, 70}, {2, 4, 70}}, {{2, 3}, {2, 0}}, {{0, 3}, {0, 2}}, {{2, 3, 0}, {2, 1, 0}}},
		Inputs: []optest.Input{{}, optest.Below(3)},
		Large:  [][]int{{20, 30, 90}, {20, 50, 90}},
	})
}

// What does not fit is an error that says so.
func TestShapeErrors(t *testing.T) {
	d, err := snug.Open(testdevice.Name, snug.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, c := range map[string]struct {
		f    func(x *snug.Tensor) *snug.Tensor
		want error
	}{
		"cat":          {func(x *snug.Tensor) *snug.Tensor { return snug.Cat(0, x, x.T()) }, snug.ErrShape},
		"cat, no dim":  {func(x *snug.Tensor) *snug.Tensor { return snug.Cat(2, x, x) }, snug.ErrShape},
		"cat, types":   {func(x *snug.Tensor) *snug.Tensor { return snug.Cat(0, x, x.Cast(snug.Float64)) }, snug.ErrDType},
		"stack":        {func(x *snug.Tensor) *snug.Tensor { return snug.Stack(4, x, x) }, snug.ErrShape},
		"split":        {func(x *snug.Tensor) *snug.Tensor { return x.Split(1, 1, 1)[0] }, snug.ErrShape},
		"split beyond": {func(x *snug.Tensor) *snug.Tensor { return x.Split(1, 2, 2)[1] }, snug.ErrShape},
		"chunk":        {func(x *snug.Tensor) *snug.Tensor { return x.Chunk(1, 2)[1] }, snug.ErrShape},
		"squeeze":      {func(x *snug.Tensor) *snug.Tensor { return x.Squeeze(0) }, snug.ErrShape},
		"unsqueeze":    {func(x *snug.Tensor) *snug.Tensor { return x.Unsqueeze(4) }, snug.ErrShape},
		"max":          {func(x *snug.Tensor) *snug.Tensor { return x.Max(2) }, snug.ErrShape},
		"softmax":      {func(x *snug.Tensor) *snug.Tensor { return x.Softmax(-3) }, snug.ErrShape},
		"var":          {func(x *snug.Tensor) *snug.Tensor { return x.Var(true, 1, -1) }, snug.ErrShape},
		"where":        {func(x *snug.Tensor) *snug.Tensor { return snug.Where(x, x, x) }, snug.ErrDType},
		"where, types": {func(x *snug.Tensor) *snug.Tensor { return snug.Where(x.Equal(x), x, x.Cast(snug.Int32)) }, snug.ErrDType},
		"masked fill":  {func(x *snug.Tensor) *snug.Tensor { return x.MaskedFill(x, 0) }, snug.ErrDType},
		"not":          {func(x *snug.Tensor) *snug.Tensor { return x.Not() }, snug.ErrDType},
		"comparison":   {func(x *snug.Tensor) *snug.Tensor { return x.Less(x.Cast(snug.Int64)) }, snug.ErrDType},
		"in place":     {func(x *snug.Tensor) *snug.Tensor { return x.Narrow(0, 0, 1).SubInPlace(x) }, snug.ErrShape},
		"index, type":  {func(x *snug.Tensor) *snug.Tensor { return x.IndexSelect(0, x.Reshape(-1)) }, snug.ErrDType},
		"index, range": {func(x *snug.Tensor) *snug.Tensor {
			return x.IndexSelect(0, snug.Full(x.Scope(), 2, snug.Int64, 1))
		}, snug.ErrIndex},
		"gather": {func(x *snug.Tensor) *snug.Tensor { return x.Gather(0, snug.Zeros(x.Scope(), snug.Int64, 2)) }, snug.ErrShape},
	} {
		err := d.Infer(context.Background(), func(s *snug.Scope) error {
			c.f(snug.Zeros(s, snug.Float32, 2, 3)).Add(snug.Zeros(s, snug.Float32)).Item()
			return nil
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for name, f := range map[string]func(x *snug.Tensor) *snug.Tensor{
		"leaky": func(x *snug.Tensor) *snug.Tensor { return x.LeakyReLU(-1) },
		"clamp": func(x *snug.Tensor) *snug.Tensor { return x.Clamp(2, 1) },
	} {
		if err := d.Infer(context.Background(), func(s *snug.Scope) error { f(snug.Zeros(s, snug.Float32, 2)); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
