package run

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/amp"
	"github.com/snug-ml/snug/checkpoint"
	"github.com/snug-ml/snug/nn"
	"github.com/snug-ml/snug/offload"
	"github.com/snug-ml/snug/optim"
)

// Savers are ways to need less memory. The models know of none: all are options of scopes,
// or said to the device, the optimizer or the window before training.
type Savers struct {
	Checkpoint    int   // every so many blocks are recomputed; 0: none
	Keep          Bytes // of results that those blocks hold all the same
	Autocast      string
	Offload       bool   // of activations
	OffloadTo     string // a directory, for a file; "": the host's memory
	OffloadState  bool
	OffloadParams bool
	InBackward    bool   // parameters are updated during backward
	Moments       string // the type of the optimizer's state; "": float32
	ChunkedHead   bool

	keepAll bool // recipes are off: for comparing
}

func (f *Flags) registerSavers(fs *flag.FlagSet) {
	v := &f.Savers
	fs.IntVar(&v.Checkpoint, "checkpoint", v.Checkpoint, "recompute each n-th block in backward, in place of keeping its activations; 0: none")
	fs.Var(&v.Keep, "keep", "`memory` for what -checkpoint does not compute again: the dearest results, such as 8MiB")
	fs.StringVar(&v.Autocast, "autocast", v.Autocast, "`type` of products and what they save: bfloat16 or float16")
	fs.BoolVar(&v.Offload, "offload", v.Offload, "keep activations on the host between forward and backward")
	fs.StringVar(&v.OffloadTo, "offload-to", v.OffloadTo, "a `directory`: -offload moves to a file there")
	fs.BoolVar(&v.OffloadState, "offload-state", v.OffloadState, "keep the optimizer's state on the host, and update there")
	fs.BoolVar(&v.OffloadParams, "offload-params", v.OffloadParams, "keep parameters on the host, but while a block that reads them runs")
	fs.BoolVar(&v.InBackward, "in-backward", v.InBackward, "update each parameter, and free its gradient, during backward; where gradients are clipped, another backward pass measures them before")
	if len(f.MomentTypes) > 0 {
		fs.StringVar(&v.Moments, "moments", v.Moments, "`type` of the optimizer's state: "+strings.Join(f.MomentTypes, " or "))
	}
	if f.LargeHead {
		fs.BoolVar(&v.ChunkedHead, "chunked-head", v.ChunkedHead, "never have all logits in memory")
	}
}

func (f *Flags) checkSavers() error {
	switch v := &f.Savers; {
	case v.Checkpoint < 0:
		return &UsageError{fmt.Sprintf("-checkpoint is %d, 0 or more wanted", v.Checkpoint)}
	case v.Keep > 0 && v.Checkpoint == 0:
		return &UsageError{"-keep is for what -checkpoint recomputes"}
	case v.OffloadTo != "" && !v.Offload:
		return &UsageError{"-offload-to is where -offload moves to"}
	case v.Autocast != "" && v.Autocast != "bfloat16" && v.Autocast != "float16":
		return &UsageError{fmt.Sprintf("-autocast %s: bfloat16 or float16 wanted", v.Autocast)}
	case v.Moments != "" && !slices.Contains(f.MomentTypes, v.Moments):
		return &UsageError{fmt.Sprintf("-moments %s: %s wanted", v.Moments, strings.Join(f.MomentTypes, " or "))}
	}
	return nil
}

// Place says where the model, before nn.Init, and its optimizer's state are to be.
func (v *Savers) Place(d *snug.Device, model any) error {
	if v.OffloadState {
		offload.State(d, offload.OnHost)
	}
	if v.OffloadParams {
		return offload.Params(nn.Params(model))
	}
	return nil
}

// StateDType is for the optimizer's config.
func (v *Savers) StateDType() snug.DType {
	return map[string]snug.DType{"": snug.Float32, "bfloat16": snug.BFloat16, "uint8": snug.Uint8}[v.Moments]
}

// offloading is for small models: what they save is small.
func (v *Savers) offloading() offload.Config {
	c := offload.Config{MinBytes: 16 << 10, AheadBytes: 1 << 20, Dir: v.OffloadTo}
	if !v.Offload { // parameters alone
		c.MinBytes = math.MaxInt64
	}
	return c
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
	if v.Keep > 0 {
		o = append(o, checkpoint.Budget(int64(v.Keep)))
	}
	if v.Offload || v.OffloadParams {
		o = append(o, offload.Activations(v.offloading()))
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
