package optim

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/snug-ml/snug"
)

// Rounding is how a step rounds what it writes in bfloat16, weights and states. To the
// nearest, the zero value, a change of less than half the distance between neighbours is
// lost: 1/512 to 1/256 of a number. Stochastic goes to either neighbour, with a probability
// that makes the mean exact (Gupta et al., 2015), so small changes are kept on average. It
// draws by seed, step and the parameter's name: a resumed run draws the same.
type Rounding struct {
	Stochastic bool   `json:"stochastic"`
	Seed       uint64 `json:"seed"`
}

// key is of a parameter's step, zero for the nearest. The kernel adds which operand it is.
func (r Rounding) key(name string, step int64) [3]uint64 {
	if !r.Stochastic {
		return [3]uint64{}
	}
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, r.Seed))
	h.Write([]byte(name))
	return [3]uint64{h.Sum64(), uint64(step)}
}

// state is one of a parameter's.
type state struct {
	name  string
	dtype snug.DType
	shape []int
}

// moments are states as large as the parameter. In Float32 they are Float64 beside a
// parameter that is.
func moments(p *snug.Param, d snug.DType, names []string) []state {
	if d == snug.Float32 && p.DType() == snug.Float64 {
		d = snug.Float64
	}
	var s []state
	for _, n := range names {
		s = append(s, state{n, d, p.Shape()})
	}
	return s
}

// stateDType refuses types that a rule's states cannot have.
func stateDType(rule string, got snug.DType, want ...snug.DType) error {
	if !slices.Contains(want, got) {
		return fmt.Errorf("%s: StateDType is %s, one of %v wanted", rule, got, want)
	}
	return nil
}
