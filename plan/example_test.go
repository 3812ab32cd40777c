package plan_test

import (
	"context"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/optim"
	"github.com/snug-ml/snug/plan"
)

// On a dry device the search costs no memory and no time.
func ExampleFit() {
	ctx := context.Background()
	dev, err := snug.Open("dry:cpu", snug.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	model := nn.Sequential{
		nn.NewLinear(1024, 4096, true), nn.Func((*snug.Tensor).ReLU),
		nn.NewLinear(4096, 10, true),
	}
	if err := nn.Init(ctx, dev, model, nil); err != nil {
		fmt.Println(err)
		return
	}
	opt, err := optim.NewAdamW(nn.Params(model), optim.DefaultAdamW())
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := plan.Fit(ctx, dev, 160<<20, plan.Job{
		Optimizer: opt,
		Batch:     4096,
		Loss: func(s *snug.Scope, micro int) *snug.Tensor {
			x, y := snug.Zeros(s, snug.Float32, micro, 1024), snug.Zeros(s, snug.Int64, micro)
			return nn.CrossEntropy(model.Forward(x), y)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a part of the batch:", 0 < p.Micro && p.Micro < 4096)
	fmt.Println("within the budget:", p.Reserved <= 160<<20)
	// Output:
	// a part of the batch: true
	// within the budget: true
}
