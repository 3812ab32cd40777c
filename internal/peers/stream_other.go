//go:build !amd64

package main

func vectorStreams() []stream { return nil }
