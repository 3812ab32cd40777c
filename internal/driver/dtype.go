package driver

import (
	"fmt"
	"math"
)

// DType is the type of a tensor's elements, chosen at run time.
type DType uint8

const (
	Float32 DType = iota // the default
	Float64
	BFloat16 // a storage format: arithmetic is done in float32
	Float16  // a storage format: arithmetic is done in float32
	Int64
	Int32
	Uint8
	Bool
	dtypes
)

var dtypeNames = [dtypes]string{"float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool"}
var dtypeSizes = [dtypes]int{4, 8, 2, 2, 8, 4, 1, 1}

func (d DType) String() string {
	if d >= dtypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypeNames[d]
}

// Size is in bytes.
func (d DType) Size() int { return dtypeSizes[d] }

// Float reports whether values have a fraction, and so can have a gradient.
func (d DType) Float() bool { return d <= Float16 }

// Half reports whether it is a 16-bit storage format.
func (d DType) Half() bool { return d == BFloat16 || d == Float16 }

// B16 is a bfloat16: the upper half of a float32.
type B16 uint16

// F16 is an IEEE 754 binary16.
type F16 uint16

func (b B16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// ToB16 rounds to the nearest, ties to even; a NaN stays one.
func ToB16(f float32) B16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > 0x7f800000 {
		return B16(u>>16 | 0x40)
	}
	return B16((u + 0x7fff + u>>16&1) >> 16)
}

func (h F16) Float32() float32 {
	sign, exp, frac := uint32(h)>>15<<31, uint32(h)>>10&0x1f, uint32(h)&0x3ff
	switch exp {
	case 0: // zero or subnormal: frac·2⁻²⁴
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// ToF16 rounds to the nearest, ties to even; what is too large becomes an infinity.
func ToF16(f float32) F16 {
	u := math.Float32bits(f)
	sign, u := F16(u>>16&0x8000), u&0x7fffffff
	switch {
	case u > 0x7f800000:
		return sign | 0x7e00
	case u >= 0x47800000: // 65536 and more, infinities
		return sign | 0x7c00
	case u < 0x38800000: // below the smallest normal number: adding ½ aligns and rounds
		return sign | F16(math.Float32bits(math.Float32frombits(u)+0.5)-0x3f000000)
	}
	return sign | F16((u-112<<23+0xfff+u>>13&1)>>13)
}
