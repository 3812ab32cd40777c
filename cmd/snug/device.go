package main

import "io"

func device(w io.Writer) error { return nil }
