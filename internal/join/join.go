// Package join makes one error of several, which reads in one line.
package join

import (
	"slices"
	"strings"
)

// Errors is errors.Join with semicolons in place of line breaks.
func Errors(errs ...error) error {
	all := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return joined(all)
}

type joined []error

func (j joined) Unwrap() []error { return j }

func (j joined) Error() string {
	var lines []string
	for _, err := range j {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "; ")
}
