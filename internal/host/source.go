package host

// Source is the host's memory as a memory.Source, memory.Mover and memory.Filler. It
// lies outside Go's heap, so that Unmap really gives it back and the garbage collector
// never waits for it. It begins at a page, so at a multiple of 64 bytes, and is zero.
//
// The race detector does not see such memory: under the tag race Map takes Go's, and no
// segment grows.
type Source struct{}

// Fill sets every byte of mem.
func (Source) Fill(mem []byte, value byte) {
	if len(mem) == 0 {
		return
	}
	mem[0] = value
	for n := 1; n < len(mem); n *= 2 { // copying is many times faster than a loop
		copy(mem[n:], mem[:n])
	}
}
