package checkpoint

import (
	"fmt"

	"github.com/snug-ml/snug"
)

// Every recomputes the k-th, 2k-th, … Block right inside what it is given to; k is 1 or more.
func Every(k int) snug.Option {
	if k < 1 {
		panic(fmt.Sprintf("checkpoint: every %d-th block", k))
	}
	return snug.Recompute(func(n int) bool { return (n+1)%k == 0 })
}

// Here recomputes the Block it is given to.
func Here() snug.Option { return snug.RecomputeHere() }
