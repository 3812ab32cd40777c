// Package amp is for training in mixed precision. Autocast, an option of a scope or a
// block, runs products in a 16-bit type and keeps parameters and what is delicate in
// float32:
//
//	dev.Train(ctx, step, amp.Autocast(snug.BFloat16))
//
// float16 needs loss scaling beside it, which optim.Window applies:
//
//	scaler := amp.NewScaler(amp.DefaultScaler())
//	w := optim.NewWindow(opt, optim.WindowConfig{Scaler: scaler})
//
// A window multiplies losses by the scale and divides gradients by it before it clips and
// steps. One with a gradient that is not finite is skipped, and the scale falls; after a
// number of good ones it grows. bfloat16 has float32's range and needs no scaler.
//
// A model can also be in a 16-bit type as a whole, by nn.SetDType. In bfloat16 its
// updates want stochastic rounding, optim.Rounding. On the CPU 16-bit types save memory, not time.
package amp
