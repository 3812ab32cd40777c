#include "textflag.h"

// As on amd64; the frame pointer is R29.

// func Callers(pc []uintptr) int
TEXT ·Callers(SB), NOSPLIT|NOFRAME, $0-32
	MOVD pc_base+0(FP), R0
	MOVD pc_len+8(FP), R1
	MOVD R29, R2
	MOVD $0, R3

next:
	CMP  R1, R3
	BGE  done
	CBZ  R2, done
	MOVD 8(R2), R4
	MOVD R4, (R0)(R3<<3)
	MOVD (R2), R2
	ADD  $1, R3
	B    next

done:
	MOVD R3, ret+24(FP)
	RET
