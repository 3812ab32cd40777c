package driver

import "testing"

// The vectors published with the reference implementation (Random123, kat_vectors).
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		block uint64
		key   [3]uint64
		want  [4]uint32
	}{
		{0, [3]uint64{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{0xffffffffffffffff, [3]uint64{0xffffffffffffffff, 0xffffffff, 0xffffffff}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x85a308d3243f6a88, [3]uint64{0x299f31d0a4093822, 0x13198a2e, 0x03707344}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox(c.key, c.block); got != c.want {
			t.Errorf("%x %x: %x, want %x", c.key, c.block, got, c.want)
		}
	}
}
