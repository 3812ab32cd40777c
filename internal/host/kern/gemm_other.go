//go:build !amd64 || race

package kern

var gemmAsm32, gemmAsm64, copyRowsAsm any
