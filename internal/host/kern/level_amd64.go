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
