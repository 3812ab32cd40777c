#include "textflag.h"

// Each loop does 32 elements. STORE is a store of 8 with or without the caches.

#define COPY(STORE) \
	MOVQ dst+0(FP), DI; \
	MOVQ x+8(FP), SI; \
	MOVQ n+24(FP), CX; \
loop: \
	VMOVUPS (SI), Y0; \
	VMOVUPS 32(SI), Y1; \
	VMOVUPS 64(SI), Y2; \
	VMOVUPS 96(SI), Y3; \
	STORE Y0, (DI); \
	STORE Y1, 32(DI); \
	STORE Y2, 64(DI); \
	STORE Y3, 96(DI); \
	ADDQ $128, SI; \
	ADDQ $128, DI; \
	SUBQ $32, CX; \
	JG loop; \
	SFENCE; \
	VZEROUPPER; \
	RET

#define TRIAD(STORE) \
	MOVQ dst+0(FP), DI; \
	MOVQ x+8(FP), SI; \
	MOVQ y+16(FP), DX; \
	MOVQ n+24(FP), CX; \
	MOVL $0x40400000, AX; \
	VMOVD AX, X8; \
	VBROADCASTSS X8, Y8; \
loop: \
	VMOVUPS (SI), Y0; \
	VMOVUPS 32(SI), Y1; \
	VMOVUPS 64(SI), Y2; \
	VMOVUPS 96(SI), Y3; \
	VFMADD231PS (DX), Y8, Y0; \
	VFMADD231PS 32(DX), Y8, Y1; \
	VFMADD231PS 64(DX), Y8, Y2; \
	VFMADD231PS 96(DX), Y8, Y3; \
	STORE Y0, (DI); \
	STORE Y1, 32(DI); \
	STORE Y2, 64(DI); \
	STORE Y3, 96(DI); \
	ADDQ $128, SI; \
	ADDQ $128, DX; \
	ADDQ $128, DI; \
	SUBQ $32, CX; \
	JG loop; \
	SFENCE; \
	VZEROUPPER; \
	RET

// func copyVec(dst, x, y *float32, n int)
TEXT ·copyVec(SB), NOSPLIT, $0-32
	COPY(VMOVUPS)

// func copyPastVec(dst, x, y *float32, n int)
TEXT ·copyPastVec(SB), NOSPLIT, $0-32
	COPY(VMOVNTPS)

// func triadVec(dst, x, y *float32, n int)
TEXT ·triadVec(SB), NOSPLIT, $0-32
	TRIAD(VMOVUPS)

// func triadPastVec(dst, x, y *float32, n int)
TEXT ·triadPastVec(SB), NOSPLIT, $0-32
	TRIAD(VMOVNTPS)
