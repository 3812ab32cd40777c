package kern

import "fmt"

// What kernels may use: each level has the instructions of those before it.
const (
	portable   = iota // loops in Go
	avx2              // with FMA and F16C
	avx512            // F, BW, DQ and VL
	avx512bf16        // products of bfloat16
)

var levelNames = [...]string{"portable", "avx2", "avx512", "avx512bf16"}

// machine is the highest level that this machine has, and level the one in use, which changes in tests only: the same, but
// where products of bfloat16 have no advantage over those of float32.
var (
	machine = levelOfMachine()
	level   = fastest(machine)
)

// ForceLevel makes kernels do with a level, for the TestMain of those that use them; an empty name changes nothing.
func ForceLevel(name string) error {
	if name == "" {
		return nil
	}
	for l, s := range levelNames {
		if s == name && l <= machine {
			level = l
			return nil
		}
	}
	return fmt.Errorf("kern: wanted one of the levels %v, got %q", levelNames[:machine+1], name)
}

// pick is the kernel in assembly if this machine can run it and there is one for these types, and else the one in Go.
func pick[F any](asm any, inGo F) F { return pickAt(avx2, asm, inGo) }

// pickAt is asm if it is for these types and the level is as high, and else what is for lower ones.
func pickAt[F any](at int, asm any, lower F) F {
	if f, ok := asm.(F); ok && level >= at {
		return f
	}
	return lower
}
