//go:build !amd64 || race

package kern

// Never called: the level is portable.

func attendColumns256(n int, s *float32, power, scale float32, sums, by *float32)             {}
func attendColumns512(n int, s *float32, power, scale float32, sums, by *float32)             {}
func attendBackColumns256(n int, s, d *float32, power, scale float32, powers, inner *float32) {}
func attendBackColumns512(n int, s, d *float32, power, scale float32, powers, inner *float32) {}
func scaleRows512(m, n int, x *float32, pitch int, by *float32, mask uint32)                  {}
func dotRows512(m, n int, x *float32, xp int, y *float32, yp int, out *float32, mask uint32)  {}
