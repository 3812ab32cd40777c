package classify

import (
	"flag"
	"fmt"

	"github.com/snug-ml/snug/data"
	"github.com/snug-ml/snug/examples/internal/run"
)

// Data are the flags that choose what to learn.
type Data struct {
	Name, Dir string
	Samples   int
}

// Register declares the flags; Parse has to be called before Load.
func (d *Data) Register(fs *flag.FlagSet) {
	fs.StringVar(&d.Name, "data", "mnist", "what to learn: mnist, fashion, cifar10, or shapes, digits that are drawn on the spot")
	fs.StringVar(&d.Dir, "dir", "", "`folder` with the data's files; mnist is fetched as a Go module without one")
	fs.IntVar(&d.Samples, "samples", 0, "of the training set and of the test set, the first so many; 0: all")
}

// Load opens the chosen data.
func (d *Data) Load() (train, test data.Dataset, err error) {
	switch d.Name {
	case "mnist":
		train, test, err = data.MNIST(d.Dir)
	case "fashion":
		train, test, err = data.FashionMNIST(d.Dir)
	case "cifar10":
		if d.Dir == "" {
			return nil, nil, &run.UsageError{Text: "-data cifar10 wants -dir, the folder with data_batch_1.bin and the others"}
		}
		train, test, err = data.CIFAR10(d.Dir)
	case "shapes":
		train, test = data.Shapes(10000, 1), data.Shapes(2000, 2)
	default:
		err = &run.UsageError{Text: fmt.Sprintf("-data %s: mnist, fashion, cifar10 or shapes wanted", d.Name)}
	}
	if err != nil || d.Samples == 0 {
		return train, test, err
	}
	for _, ds := range []*data.Dataset{&train, &test} {
		if *ds, err = data.Part(*ds, 0, min(d.Samples, (*ds).Len())); err != nil {
			return nil, nil, &run.UsageError{Text: fmt.Sprintf("-samples is %d, 0 or more wanted", d.Samples)}
		}
	}
	return train, test, nil
}
