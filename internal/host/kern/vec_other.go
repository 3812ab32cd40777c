//go:build !amd64 || race

package kern

// Never called: avx2 is false.

func addVec(n int, dst, x, y, scalars *float32, mask *int32)           {}
func mulVec(n int, dst, x, y, scalars *float32, mask *int32)           {}
func axpyVec(n int, dst, x, scalars *float32, mask *int32)             {}
func reluVec(n int, dst, x, scalars *float32, mask *int32)             {}
func reluBackVec(n int, dst, y, dy, scalars *float32, mask *int32)     {}
func expVec(n int, dst, x, scalars *float32, mask *int32)              {}
func sigmoidVec(n int, dst, x, scalars *float32, mask *int32)          {}
func tanhVec(n int, dst, x, scalars *float32, mask *int32)             {}
func geluVec(n int, dst, x, scalars *float32, mask *int32)             {}
func geluTanhVec(n int, dst, x, scalars *float32, mask *int32)         {}
func sgdVec(n int, w, grad, m, scalars *float32, mask *int32)          {}
func adamwVec(n int, w, grad, m, v, scalars *float32, mask *int32)     {}
func expShiftVec(n int, dst, x, scalars *float32, mask *int32)         {}
func siluVec(n int, dst, x, scalars *float32, mask *int32)             {}
func geluBackVec(n int, dst, x, dy, scalars *float32, mask *int32)     {}
func geluTanhBackVec(n int, dst, x, dy, scalars *float32, mask *int32) {}
func sumVec(n int, x *float32, mask *int32) float64                    { return 0 }
