package main

import (
	"fmt"

	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
)

// gomlxMLP trains by hand what GoMLX's trainer would: its SGD has no momentum.
func gomlxMLP(batch, threads int) (step, error) {
	backend, err := simplego.New(fmt.Sprintf("parallelism=%d", threads))
	if err != nil {
		return nil, err
	}
	ctx := context.New()
	var params, velocities []*context.Variable
	variable := func(v []float32, dims ...int) {
		name := fmt.Sprintf("value%d", len(params))
		params = append(params, ctx.VariableWithValue(name, tensors.FromFlatDataAndDimensions(v, dims...)))
	}
	for i, in := range layers[:len(layers)-1] {
		out := layers[i+1]
		variable(uniform(in*out, in), in, out)
		variable(uniform(out, in), 1, out)
	}
	exec, err := context.NewExec(backend, ctx, func(ctx *context.Context, x, y *graph.Node) *graph.Node {
		g := x.Graph()
		for i := 0; i < len(params); i += 2 {
			if i > 0 {
				x = graph.Max(x, graph.ScalarZero(g, x.DType()))
			}
			x = graph.Add(graph.Dot(x, params[i].ValueGraph(g)), params[i+1].ValueGraph(g))
		}
		loss := losses.SparseCategoricalCrossEntropyLogits([]*graph.Node{y}, []*graph.Node{x})
		for i, gradient := range ctx.BuildTrainableVariablesGradientsGraph(loss) {
			p, v := params[i], velocities[i]
			moved := graph.Add(graph.MulScalar(v.ValueGraph(g), momentum), gradient)
			v.SetValueGraph(moved)
			p.SetValueGraph(graph.Sub(p.ValueGraph(g), graph.MulScalar(moved, rate)))
		}
		return loss
	})
	if err != nil {
		return nil, err
	}
	x := tensors.FromFlatDataAndDimensions(normal(batch*layers[0]), batch, layers[0])
	classes := make([]int32, batch)
	for i, c := range labels(batch, layers[len(layers)-1]) {
		classes[i] = int32(c)
	}
	y := tensors.FromFlatDataAndDimensions(classes, batch, 1)
	return func() (float64, error) {
		for i := len(velocities); i < len(params); i++ { // in the first step
			shape := params[i].Shape()
			velocity := ctx.In("momentum").VariableWithValue(params[i].Name(), tensors.FromShape(shape))
			velocities = append(velocities, velocity.SetTrainable(false))
		}
		loss, err := exec.Exec1(x, y)
		if err != nil {
			return 0, err
		}
		return float64(tensors.ToScalar[float32](loss)), nil
	}, nil
}
