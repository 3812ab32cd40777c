package checkpoint

import "github.com/snug-ml/snug"

// Report has fn told what recomputing each Block inside was worth: once its second run has
// been, in backward, the last Block first. A dry run tells the same. Segments that save
// nothing are those for which r.Saved() <= 0; r says so in words.
//
//	checkpoint.Report(func(r snug.Recomputed) {
//		if r.Saved() <= 0 {
//			log.Warn(r.String())
//		}
//	})
func Report(fn func(r snug.Recomputed)) snug.Option { return snug.OnRecomputed(fn) }
