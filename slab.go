package snug

// slab hands out values that live about as long as each other, many from one allocation of
// Go's. All of them go when nothing refers to any.
type slab[T any] []T

const slabLen = 16

func (b *slab[T]) new() *T {
	if len(*b) == 0 {
		*b = make([]T, slabLen)
	}
	v := &(*b)[0]
	*b = (*b)[1:]
	return v
}

// room is an empty slice that has room for n.
func (b *slab[T]) room(n int) []T {
	if len(*b) < n {
		*b = make([]T, max(n, 4*slabLen))
	}
	v := (*b)[:0:n]
	*b = (*b)[n:]
	return v
}

// more is v with one more element, a zero, in b's memory.
func (b *slab[T]) more(v []T) []T {
	n := len(v)
	if n == cap(v) {
		v = append(b.room(2*n+1), v...)
	}
	return v[:n+1]
}
