//go:build !amd64 || race

package kern

var convLevels [avx512bf16 + 1]any

var transposeAsm, copyLinesAsm, gatherLinesAsm, scatterLinesAsm any
