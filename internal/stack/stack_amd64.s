#include "textflag.h"

// Go keeps frame pointers: each is where the caller's is saved, below the return address.
// The goroutine's first has none.

// func Callers(pc []uintptr) int
TEXT ·Callers(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ pc_base+0(FP), DI
	MOVQ pc_len+8(FP), CX
	MOVQ BP, SI
	XORL AX, AX

next:
	CMPQ  AX, CX
	JGE   done
	TESTQ SI, SI
	JZ    done
	MOVQ  8(SI), DX
	MOVQ  DX, (DI)(AX*8)
	MOVQ  (SI), SI
	INCQ  AX
	JMP   next

done:
	MOVQ AX, ret+24(FP)
	RET
