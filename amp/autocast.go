package amp

import "github.com/snug-ml/snug"

// Autocast runs what is inside in mixed precision, d being snug.BFloat16 or snug.Float16:
//
//   - products (MatMul, Linear, Conv2D, ConvTranspose2D, Attention) take their inputs in d
//     and give d, their sums being float32 all the same; so does nn.LinearCrossEntropy, whose
//     loss is float32;
//   - what loses too much in 16 bits (Exp, Log, Pow, Softmax, LogSoftmax, Sum, Mean, Var,
//     losses) runs in float32; the normalizations compute in it and keep their input's type;
//   - what joins tensors (Add, Sub, Mul, Div, Maximum, Minimum, Where, Cat) runs in the
//     widest type that comes, in place in the first one's;
//   - all else takes what comes, also a user's operations but those that say Low. Float64
//     stays what it is.
//
// Parameters stay float32, and so do their gradients. Each is cast once a scope, in the
// category memory.Casts, and freed when the scope ends. As an option of a Block, Float32
// switches it off inside.
func Autocast(d snug.DType) snug.Option { return snug.Autocast(d) }
