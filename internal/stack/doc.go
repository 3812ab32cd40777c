// Package stack says where a call came from, at a fraction of what runtime.Callers takes:
// every operation notes its line, and few ever show it.
package stack
