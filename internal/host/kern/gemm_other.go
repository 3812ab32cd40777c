//go:build !amd64 || race

package kern

var (
	gemmTile32 = gemmTileGo[float32]
	gemmTile64 = gemmTileGo[float64]
)
