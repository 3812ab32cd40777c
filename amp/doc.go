// Package amp is for training in 16-bit floats. It has the loss scaling that float16 needs,
// which optim.Window applies:
//
//	scaler := amp.NewScaler(amp.DefaultScaler())
//	w := optim.NewWindow(opt, optim.WindowConfig{Scaler: scaler})
//
// A window multiplies losses by the scale and divides gradients by it before it clips and
// steps. One with a gradient that is not finite is skipped, and the scale falls; after a
// number of good ones it grows. bfloat16 has float32's range and needs no scaler.
//
// What does not work yet: autocast. Operations compute in the type of their inputs; a model
// is in a 16-bit type as a whole, by nn.SetDType, or casts by hand.
package amp
