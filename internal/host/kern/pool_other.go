//go:build !amd64 || race

package kern

// Never called: the level is portable.

func maxPool1(int, *float32, *uint8, *float32, int, int, int, int)  {}
func maxPool2(int, *float32, *uint8, *float32, int, int, int, int)  {}
func maxPool1z(int, *float32, *uint8, *float32, int, int, int, int) {}
func maxPool2z(int, *float32, *uint8, *float32, int, int, int, int) {}
func maxPoolBack2(_, _ *float32, _ *uint8, _, _, _, _, _ int)       {}
func maxPoolBack3(_, _ *float32, _ *uint8, _, _, _, _, _ int)       {}
