#include "textflag.h"

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	MOVL $16, AX

loop:
	PAUSE
	SUBL $1, AX
	JNE  loop
	RET
