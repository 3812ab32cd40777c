//go:build !amd64

package par

import "runtime"

func pause() { runtime.Gosched() }
