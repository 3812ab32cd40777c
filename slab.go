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

// copy is a copy of v that may not grow in place.
func (b *slab[T]) copy(v []T) []T {
	n := len(v)
	if len(*b) < n {
		*b = make([]T, max(n, 16*slabLen))
	}
	c := (*b)[:n:n]
	copy(c, v)
	*b = (*b)[n:]
	return c
}
