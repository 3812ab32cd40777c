// Package safetensors reads and writes the safetensors format: eight bytes with the
// length of a JSON header, the header with each tensor's name, type, shape and place,
// then the tensors' bytes, little endian, without gaps.
//
// A reader trusts nothing: Open has checked the whole header against the file before it
// returns, so that Bytes can only fail where the disk does. Errors name the file.
package safetensors

import (
	"fmt"
	"math/bits"
)

const (
	maxHeader   = 100_000_000 // the format's own bound
	metadataKey = "__metadata__"
)

var sizes = map[string]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
	"U16": 2, "I16": 2, "F16": 2, "BF16": 2,
	"U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}

// Info describes a tensor: its type as the format spells it ("F32", "BF16", "I64", …),
// its shape, empty for a scalar, and its length in bytes.
type Info struct {
	DType string
	Shape []int
	Bytes int64
}

// bytesOf is the length of a tensor in bytes; a product that does not fit is an error.
func bytesOf(dtype string, shape []int) (int64, error) {
	n, ok := sizes[dtype]
	if !ok {
		return 0, fmt.Errorf("unknown dtype %q", dtype)
	}
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if n = int64(lo); hi != 0 || n < 0 {
			return 0, fmt.Errorf("shape %v of %s has more than 2^63 bytes", shape, dtype)
		}
	}
	return n, nil
}
