package run

import (
	"fmt"
	"io"
	"time"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/memory"
)

// Row is a line of a table.
type Row struct{ Name, Value string }

// Table writes the rows, and what the device's memory was for when most was in use.
func Table(w io.Writer, d *snug.Device, rows ...Row) {
	m := d.Memory().Stats()
	rows = append(rows, Row{"peak memory", memory.FormatBytes(m.Peak.Allocated)})
	for c, n := range m.AtPeak {
		if n > 0 {
			rows = append(rows, Row{"  " + memory.Category(c).String(), memory.FormatBytes(n)})
		}
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%-20s %12s\n", r.Name, r.Value)
	}
}

// Seconds is how a table shows a time.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Percent is how a table shows a part.
func Percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }
