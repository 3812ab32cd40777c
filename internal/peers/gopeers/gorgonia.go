package main

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// gorgonia is a graph under construction. Its functions panic with the library's errors,
// which gorgoniaModel returns.
type gorgonia struct {
	g          *G.ExprGraph
	learnables G.Nodes
}

func must(n *G.Node, err error) *G.Node {
	if err != nil {
		panic(failure{err})
	}
	return n
}

// failure is one of the library's errors on its way to gorgoniaModel.
type failure struct{ error }

func (m *gorgonia) node(v []float32, shape ...int) *G.Node {
	t := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v))
	return G.NodeFromAny(m.g, t, G.WithName(fmt.Sprintf("value%d", m.g.Nodes().Len())))
}

func (m *gorgonia) param(v []float32, shape ...int) *G.Node {
	n := m.node(v, shape...)
	m.learnables = append(m.learnables, n)
	return n
}

func (m *gorgonia) linear(x *G.Node, out int) *G.Node {
	in := x.Shape()[1]
	w := m.param(uniform(in*out, in), in, out)
	b := m.param(uniform(out, in), 1, out)
	return must(G.BroadcastAdd(must(G.Mul(x, w)), b, nil, []byte{0}))
}

// conv is a convolution with padding (k-1)/2 and no bias, then batch norm.
func (m *gorgonia) conv(x *G.Node, out, k, stride int) *G.Node {
	in, pad := x.Shape()[1], (k-1)/2
	w := m.param(uniform(out*in*k*k, in*k*k), out, in, k, k)
	x = must(G.Conv2d(x, w, tensor.Shape{k, k}, []int{pad, pad}, []int{stride, stride}, []int{1, 1}))
	scale := m.param(constant(out, 1), 1, out, 1, 1)
	shift := m.param(constant(out, 0), 1, out, 1, 1)
	x, _, _, _, err := G.BatchNorm(x, scale, shift, 0.1, 1e-5)
	return must(x, err)
}

// block is a basic block.
func (m *gorgonia) block(x *G.Node, out, stride int) *G.Node {
	way := x
	if stride > 1 || x.Shape()[1] != out {
		way = m.conv(x, out, 1, stride)
	}
	x = must(G.Rectify(m.conv(x, out, 3, stride)))
	return must(G.Rectify(must(G.Add(m.conv(x, out, 3, 1), way))))
}

// gorgoniaModel trains a classifier of ten classes.
func gorgoniaModel(batch int, shape []int, forward func(m *gorgonia, x *G.Node) *G.Node) (s step, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	const classes = 10
	m := &gorgonia{g: G.NewGraph()}
	size := batch
	for _, d := range shape {
		size *= d
	}
	x := m.node(normal(size), append([]int{batch}, shape...)...)
	target := make([]float32, batch*classes)
	for i, c := range labels(batch, classes) {
		target[i*classes+c] = 1
	}
	y := m.node(target, batch, classes)
	logits := forward(m, x)
	right := must(G.HadamardProd(must(G.LogSoftMax(logits)), y)) // its zeros are in the mean, too
	loss := must(G.Mul(must(G.Mean(right)), G.NewConstant(float32(-classes))))
	var value G.Value
	G.Read(loss, &value)
	if _, err := G.Grad(loss, m.learnables...); err != nil {
		return nil, err
	}
	vm := G.NewTapeMachine(m.g, G.BindDualValues(m.learnables...))
	sgd := G.NewMomentum(G.WithLearnRate(rate), G.WithMomentum(momentum))
	return func() (float64, error) {
		if err := vm.RunAll(); err != nil {
			return 0, err
		}
		if err := sgd.Step(G.NodesToValueGrads(m.learnables)); err != nil {
			return 0, err
		}
		vm.Reset()
		return float64(value.Data().(float32)), nil
	}, nil
}

func gorgoniaMLP(batch, _ int) (step, error) {
	return gorgoniaModel(batch, layers[:1], func(m *gorgonia, x *G.Node) *G.Node {
		for i, out := range layers[1:] {
			if i > 0 {
				x = must(G.Rectify(x))
			}
			x = m.linear(x, out)
		}
		return x
	})
}

func gorgoniaResNet18(batch, _ int) (step, error) {
	return gorgoniaModel(batch, []int{3, 32, 32}, func(m *gorgonia, x *G.Node) *G.Node {
		x = must(G.Rectify(m.conv(x, 64, 3, 1)))
		for i, width := range []int{64, 128, 256, 512} {
			x = m.block(x, width, min(1+i, 2))
			x = m.block(x, width, 1)
		}
		x = must(G.Mean(x, 2, 3)) // its GlobalAveragePool2D has no gradient
		return m.linear(x, 10)
	})
}
