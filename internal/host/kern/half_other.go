//go:build !amd64 || race

package kern

import "github.com/snug-ml/snug/internal/driver"

func widenB16Row([]float32, []driver.B16) int  { return 0 }
func widenF16Row([]float32, []driver.F16) int  { return 0 }
func narrowB16Row([]driver.B16, []float32) int { return 0 }
func narrowF16Row([]driver.F16, []float32) int { return 0 }

func roundB16Row([]driver.B16, []float32, []uint32) int { return 0 }
