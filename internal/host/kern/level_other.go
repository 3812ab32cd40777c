//go:build !amd64 || race

package kern

func levelOfMachine() int { return portable }

func fastest(l int) int { return l }
