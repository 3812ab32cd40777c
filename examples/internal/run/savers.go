package run

import (
	"flag"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// Savers are ways to need less memory. The models know of none: all are options of scopes,
// or said to the window.
type Savers struct {
	Checkpoint int    // every so many blocks are recomputed; 0: none
	Autocast   string // a 16-bit type; "": none
	Offload    bool
	InBackward bool // parameters are updated during backward

	keepAll bool // recipes are off: for comparing
}

func (v *Savers) register(fs *flag.FlagSet) {
	fs.IntVar(&v.Checkpoint, "checkpoint", v.Checkpoint, "recompute each n-th block in backward, in place of keeping its activations; 0: none")
	fs.StringVar(&v.Autocast, "autocast", v.Autocast, "`type` of products and what they save: bfloat16 or float16")
	fs.BoolVar(&v.Offload, "offload", v.Offload, "keep activations on the host between forward and backward")
	fs.BoolVar(&v.InBackward, "in-backward", v.InBackward, "update each parameter, and free its gradient, during backward")
}

func (v *Savers) check() error {
	switch {
	case v.Checkpoint < 0:
		return &UsageError{fmt.Sprintf("-checkpoint is %d, 0 or more wanted", v.Checkpoint)}
	case v.Autocast != "" && v.Autocast != "bfloat16" && v.Autocast != "float16":
		return &UsageError{fmt.Sprintf("-autocast %s: bfloat16 or float16 wanted", v.Autocast)}
	}
	return nil
}

// Options are a training scope's, with the stream that dropout draws from.
func (v *Savers) Options(rng *snug.Rand) []snug.Option {
	o := []snug.Option{snug.Random(rng)}
	if v.Checkpoint > 0 {
		o = append(o, checkpoint.Every(v.Checkpoint))
	}
	switch v.Autocast {
	case "bfloat16":
		o = append(o, amp.Autocast(snug.BFloat16))
	case "float16":
		o = append(o, amp.Autocast(snug.Float16))
	}
	if v.Offload {
		o = append(o, offload.Activations(offload.Default()))
	}
	if v.keepAll {
		o = append(o, snug.NoRecipes())
	}
	return o
}

// Window is c with what the savers want of it: float16 needs its losses scaled.
func (v *Savers) Window(o optim.Optimizer, c optim.WindowConfig) *optim.Window {
	if v.Autocast == "float16" {
		c.Scaler = amp.NewScaler(amp.DefaultScaler())
	}
	c.TwoPass = v.InBackward
	return optim.NewWindow(o, c)
}

// Backward adds up a micro-batch's gradients. In the last one parameters may be updated
// at the same time; stepped says so.
func (v *Savers) Backward(w *optim.Window, loss *snug.Tensor, count float64, last bool) (stepped bool, err error) {
	if !v.InBackward || !last {
		return false, w.Backward(loss, count)
	}
	_, err = w.BackwardStep(loss, count)
	return true, err
}
