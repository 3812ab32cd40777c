package memory

import (
	"cmp"
	"math"
	"slices"
)

// stay is a range of addresses and the time in which it is in use.
type stay struct {
	off, end    int64
	from, until int32
}

// lay finds a place for each block of r, beside what is in s now, so that the last address is low, and reports whether
// s has room. Blocks are placed one after the other, each as low as it can be (first those that are large or, in a
// second attempt, long in use as well: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
// 2020). Then the one that is on top is placed earlier, and all of them anew, some times over.
func (r *round) lay(s *segment) bool {
	r.seg, r.settled = nil, false
	var there []stay
	var length int64
	for c := s.first; c != nil; c = c.next {
		if c.state != Free && c.state != Empty {
			there = append(there, stay{c.off, c.off + c.size, 0, math.MaxInt32})
		}
		length = c.off + c.size
	}
	n := int32(len(r.asked))
	life := func(i int32) float64 { return float64(min(r.asked[i].until, n) - i) }
	least := int64(math.MaxInt64)
	offs, best := make([]int64, n), make([]int64, n)
	for _, weight := range []func(i int32) float64{
		func(i int32) float64 { return float64(r.asked[i].size) },
		func(i int32) float64 { return float64(r.asked[i].size) * math.Sqrt(life(i)) },
	} {
		order := make([]int32, n)
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			if x, y := r.asked[a].until == math.MaxInt32, r.asked[b].until == math.MaxInt32; x != y {
				if x {
					return -1
				}
				return 1
			}
			return cmp.Compare(weight(b), weight(a))
		})
		for turn := 128 >> min(r.layouts, 7); ; turn-- { // what is laid out again and again is soon done
			top, end := r.fit(order, there, offs)
			if end < least {
				least = end
				copy(best, offs)
			}
			at := slices.Index(order, top)
			if turn == 0 || at <= 0 {
				break
			}
			copy(order[at/2+1:at+1], order[at/2:at])
			order[at/2] = top
		}
	}
	r.layouts++
	if least > length {
		return false
	}
	for i := range r.asked {
		r.asked[i].off = best[i]
	}
	r.seg = s
	return true
}

// fit places the blocks in this order and returns the one on top, and where that ends.
func (r *round) fit(order []int32, there []stay, offs []int64) (top int32, end int64) {
	stays := slices.Grow(slices.Clone(there), len(order)) // by address
	top = -1
	for _, i := range order {
		a := &r.asked[i]
		var off int64
		for _, t := range stays {
			if t.from >= a.until || t.until <= i {
				continue
			}
			if t.off-off >= a.size {
				break
			}
			off = max(off, t.end)
		}
		offs[i] = off
		at, _ := slices.BinarySearchFunc(stays, off, func(t stay, off int64) int { return cmp.Compare(t.off, off) })
		stays = slices.Insert(stays, at, stay{off, off + a.size, i, a.until})
		if off+a.size > end {
			top, end = i, off+a.size
		}
	}
	return top, end
}
