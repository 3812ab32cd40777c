//go:build !race

package kern

import "golang.org/x/sys/cpu"

func levelOfMachine() int {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA || !x.HasF16C:
		return portable
	case !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL:
		return avx2
	case !x.HasAVX512BF16:
		return avx512
	}
	return avx512bf16
}

// fastest is the level that is fastest on a machine that has l. Intel's processors since Sapphire Rapids do a VDPBF16PS in
// two cycles, in which they do four VFMADD231PS, each half of its work: their bfloat16 is for AMX.
// On AMD's a VDPBF16PS takes as long as one multiplication.
func fastest(l int) int {
	const auth = 0x68747541 // of "AuthenticAMD"
	if l == avx512bf16 && vendor() != auth {
		return avx512
	}
	return l
}

// vendor is the first four letters of the maker of the processor.
func vendor() uint32
