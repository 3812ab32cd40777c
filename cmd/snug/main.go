// Command snug builds programs with the CUDA backend and says what devices there are.
package main

import (
	"fmt"
	"os"
	"strings"
)

const usage = `usage:
	snug cuda env	prepare a build with -tags cuda: eval "$(snug cuda env)"
	snug device	say which devices this build finds, and where it looked
`

func main() {
	var err error
	switch strings.Join(os.Args[1:], " ") {
	case "cuda env":
		err = env(os.Stdout)
	case "device":
		err = device(os.Stdout)
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "snug:", err)
		os.Exit(1)
	}
}
