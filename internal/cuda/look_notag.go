//go:build !cuda

package cuda

func build() string {
	return "this build has no CUDA backend: it was made without -tags cuda (docs/cuda.md says how)"
}
