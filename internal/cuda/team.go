package cuda

// teams says who works on rows of n elements, inner apart, with the kernels of team.cuh: a
// thread on each, or a block. So a row's bits do not depend on how many there are.
func teams(rows, n, inner int) (kind string, grid, block [3]int) {
	const most = 1 << 16 // blocks, which then take turns
	if n <= 64 || inner >= 32 {
		return "alone", line(min(rows, most*threads), threads), [3]int{threads, 1, 1}
	}
	members := 32
	for members < threads && members*4 < n {
		members *= 2
	}
	return "together", line(min(rows, most), 1), [3]int{members, 1, 1}
}

// abreast is how many threads of a block work on a row of n elements where they need
// nothing of each other: a power of two, so that the other ones have rows of their own.
func abreast(n int) int {
	w := 1
	for w < n && w < threads {
		w *= 2
	}
	return w
}
