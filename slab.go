package snug

// slab hands out values that live about as long as each other, many from one allocation of
// Go's. All of them go when nothing refers to any.
type slab[T any] []T

const slabLen = 18 // which fills the sizes in which Go allocates

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

// shelf is a slab whose values are all given back at once, to be handed out again.
type shelf[T any] struct {
	rest  []T // of the last part in use
	parts [][]T
	in    int // parts in use
}

const shelfLen = 32

func (b *shelf[T]) new() *T {
	if len(b.rest) == 0 {
		b.next(1)
	}
	v := &b.rest[0]
	b.rest = b.rest[1:]
	return v
}

// room is an empty slice that has room for n.
func (b *shelf[T]) room(n int) []T {
	if len(b.rest) < n {
		b.next(n)
	}
	v := b.rest[:0:n]
	b.rest = b.rest[n:]
	return v
}

// next begins a part that has room for n.
func (b *shelf[T]) next(n int) {
	for b.rest = nil; len(b.rest) < n; b.in++ {
		if b.in == len(b.parts) {
			b.parts = append(b.parts, make([]T, max(n, shelfLen)))
		}
		b.rest = b.parts[b.in]
	}
}

// more is v with one more element, a zero, in b's memory.
func (b *shelf[T]) more(v []T) []T {
	n := len(v)
	if n == cap(v) {
		v = append(b.room(2*n+1), v...)
	}
	return v[:n+1]
}

// reset takes all values back.
func (b *shelf[T]) reset() {
	for _, part := range b.parts[:b.in] {
		clear(part)
	}
	b.rest, b.in = nil, 0
}
