package host

import "github.com/snug-ml/snug/internal/driver"

// widened makes a float32 kernel one for 16-bit floats: all operands of such a type are
// widened into the workspace, and what it wrote is rounded once.
func widened(k driver.Kernel) driver.Kernel {
	return driver.Kernel{
		Mixed: k.Mixed,
		Workspace: func(a *driver.Args) int64 {
			wide, n := widen(a)
			if k.Workspace != nil {
				n += k.Workspace(wide)
			}
			return n
		},
		Run: func(a *driver.Args) {
			wide, n := widen(a)
			wide.Work = a.Work[n:]
			at := a.Work
			place := func(from, to []driver.Array) {
				for i := range from {
					if !from[i].Type.Half() {
						continue
					}
					size := space(&from[i])
					to[i].Data, at = at[:size], at[size:]
					driver.GatherFloat(driver.Of[float32](&to[i])[:from[i].Len()], &from[i])
				}
			}
			place(a.In, wide.In)
			place(a.Out, wide.Out) // a kernel may add to what is there
			k.Run(wide)
			for i := range a.Out {
				if a.Out[i].Type.Half() {
					store32(&a.Out[i])(driver.Of[float32](&wide.Out[i])[:a.Out[i].Len()], 0, 1)
				}
			}
		},
	}
}

// space is what an array takes in float32, in whole cache lines.
func space(a *driver.Array) int64 { return (int64(a.Len())*4 + 63) &^ 63 }

func widen(a *driver.Args) (wide *driver.Args, bytes int64) {
	w := *a
	part := func(from []driver.Array) []driver.Array {
		to := append([]driver.Array(nil), from...)
		for i := range to {
			if to[i].Type.Half() {
				bytes += space(&to[i])
				to[i].Type, to[i].Strides, to[i].Data = driver.Float32, driver.RowMajor(to[i].Shape), nil
			}
		}
		return to
	}
	w.In, w.Out, w.Work = part(a.In), part(a.Out), nil
	return &w, bytes
}
