//go:build !amd64 || race

package kern

const avx2 = false

var convTilesAsm, weightTileAsm, transposeAsm any
