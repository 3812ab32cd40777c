package kern

// pick is the kernel in assembly if this machine can run it and there is one for these types, and else the one in Go.
func pick[F any](asm any, portable F) F {
	if f, ok := asm.(F); ok && avx2 {
		return f
	}
	return portable
}
