//go:build !amd64 || race

package kern

var avx2 = false

var convTilesAsm, weightTileAsm, convDotsAsm, transposeAsm, copyLinesAsm, gatherLinesAsm, scatterLinesAsm any
