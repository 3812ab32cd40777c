package memory

import "fmt"

// FormatBytes is n in the largest fitting unit, as "23.5 MiB" or "512 B".
func FormatBytes(n int64) string {
	if -1024 < n && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1024, 0
	for ; (v >= 1023.95 || v <= -1023.95) && i < 5; i++ {
		v /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTPE"[i])
}
