// Package kern has the arithmetic of the host: products of matrices, convolutions, rows of elements.
//
// On amd64 with AVX2 and FMA the inner loops are assembly, written by the programs in gen; elsewhere, and under the
// race detector, they are Go. Nothing here allocates what grows with a tensor: who calls brings a workspace, whose size a
// function of shapes and threads tells. Results do not depend on the number of threads, and a sample's do not depend on how
// many there are; the two levels differ by rounding.
package kern
