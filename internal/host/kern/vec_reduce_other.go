//go:build !amd64 || race

package kern

// Never called: the level is portable.

func sumWide(n int, x, scalars *float32) float64         { return 0 }
func squaresWide(n int, x, scalars *float32) float64     { return 0 }
func dotWide(n int, x, y, scalars *float32) float64      { return 0 }
func maxWide(n int, x, scalars *float32) float32         { return 0 }
func sumExpWide(n int, x, scalars *float32) float64      { return 0 }
func expSumWide(n int, dst, x, scalars *float32) float64 { return 0 }
func expScaledVec(n int, dst, x, scalars *float32)       {}
func softmaxBackVec(n int, dst, y, dy, scalars *float32) {}
