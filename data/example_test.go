package data_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/data"
)

func Example() {
	l, err := data.NewLoader(data.Shapes(100, 1), data.LoaderConfig{
		Seed: 1, Shuffle: true, Workers: 2,
		Augment: []data.Augment{data.Crop(2)},
	})
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range l.Batches(context.Background(), 32) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Shape, len(b.Y), "labels")
	}
	fmt.Printf("%+v\n", l.State())
	// Output:
	// [32 1 28 28] 32 labels
	// [32 1 28 28] 32 labels
	// [32 1 28 28] 32 labels
	// [4 1 28 28] 4 labels
	// {Epoch:1 Sample:0}
}

func ExampleSlices() {
	// Three points in the plane, of two classes.
	ds, err := data.Slices([]float32{0, 1, 2, 3, 4, 5}, []int64{0, 1, 1}, data.Spec{Shape: []int{2}, Classes: 2})
	if err != nil {
		log.Fatal(err)
	}
	l, err := data.NewLoader(ds, data.LoaderConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range l.Batches(context.Background(), 2) {
		fmt.Println(b.X.F32, b.Y, err)
	}
	// Output:
	// [0 1 2 3] [0 1] <nil>
	// [4 5] [1] <nil>
}

// A loader as JSON is its position.
func ExampleLoader_State() {
	l, err := data.NewLoader(data.Shapes(100, 1), data.LoaderConfig{Seed: 1, Shuffle: true})
	if err != nil {
		log.Fatal(err)
	}
	for range l.Batches(context.Background(), 30) {
		saved, err := json.Marshal(l)
		fmt.Println(string(saved), err)
		break
	}
	resumed, err := data.NewLoader(data.Shapes(100, 1), data.LoaderConfig{Seed: 1, Shuffle: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(json.Unmarshal([]byte(`{"epoch":0,"sample":30}`), resumed), resumed.State() == l.State())
	// Output:
	// {"epoch":0,"sample":30} <nil>
	// <nil> true
}

func ExampleBatch_Split() {
	ds, err := data.Slices([]uint8{1, 2, 3, 4, 5}, []int64{0, 0, 0, 0, 0}, data.Spec{Shape: []int{1}})
	if err != nil {
		log.Fatal(err)
	}
	l, err := data.NewLoader(ds, data.LoaderConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for b := range l.Batches(context.Background(), 5) {
		for micro, last := range b.Split(2) {
			fmt.Println(micro.X.U8, last)
		}
	}
	// Output:
	// [1 2] false
	// [3 4] false
	// [5] true
}

func ExampleBatch_In() {
	ds, err := data.Slices([]uint8{0, 255}, []int64{0, 1}, data.Spec{Shape: []int{1}, Classes: 2})
	if err != nil {
		log.Fatal(err)
	}
	mean, std, err := data.MeanStd(ds)
	if err != nil {
		log.Fatal(err)
	}
	l, err := data.NewLoader(ds, data.LoaderConfig{Mean: mean, Std: std})
	if err != nil {
		log.Fatal(err)
	}
	d, err := snug.Open("cpu", snug.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	ctx := context.Background()
	for b := range l.Batches(ctx, 2) {
		err := d.Infer(ctx, func(s *snug.Scope) error {
			x, _ := b.In(s)
			v, err := snug.Download[float32](x)
			fmt.Println(v)
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [-1 1]
}

func ExampleNewCorpus() {
	c, err := data.NewCorpus("to be or not to be", 4, 4)
	if err != nil {
		log.Fatal(err)
	}
	l, err := data.NewLoader(c, data.LoaderConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for b := range l.Batches(context.Background(), 1) {
		fmt.Printf("%q then %q\n", c.Decode(b.X.I64), c.Decode(b.Y))
	}
	// Output:
	// "to b" then "o be"
	// "e or" then " or "
	// " not" then "not "
	// " to " then "to b"
}
