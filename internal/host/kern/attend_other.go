//go:build !amd64 || race

package kern

// Never called: the level is portable.

func attendRow512(n int, x *float32, scale float32, mask uint32) (top, sum float32)  { return }
func attendBackRow512(n int, x, y *float32, scale, sums, inner float32, mask uint32) {}
