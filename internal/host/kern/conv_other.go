//go:build !amd64 || race

package kern

const avx2 = false

var convTilesAsm, weightTileAsm, convDotsAsm, transposeAsm, takeEvenAsm, putEvenAsm any
