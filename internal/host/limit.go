package host

import "errors"

// margin is what is left to Go's heap, to the pages of files in use and to other
// programs: an eighth, and 128 MiB at least. So running out is an error value and not
// the end of the process.
func margin(bytes int64) int64 { return max(bytes/8, 128<<20) }

var errNoMemory = errors.New("host: no memory is available beyond what is left to the rest of the process")

func lessMargin(bytes int64) (int64, error) {
	if bytes -= margin(bytes); bytes > 0 {
		return bytes, nil
	}
	return 0, errNoMemory
}
