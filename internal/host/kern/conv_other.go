//go:build !amd64 || race

package kern

var convTilesAsm, weightTileAsm, convDotsAsm, transposeAsm, copyLinesAsm, gatherLinesAsm, scatterLinesAsm any
