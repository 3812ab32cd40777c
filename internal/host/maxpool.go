package host

import (
	"math"

	"github.com/snug-ml/snug/internal/driver"
	"github.com/snug-ml/snug/internal/host/kern"
	"github.com/snug-ml/snug/internal/host/par"
)

func init() {
	pools := func(name string, f32, f64 func(*driver.Args)) {
		register(name, driver.Kernel{Run: f32, Mixed: true}, driver.Kernel{Run: f64, Mixed: true})
	}
	pools("max pool", maxPool[float32], maxPool[float64])
	pools("max pool backward", maxPoolBackward[float32], maxPoolBackward[float64])
}

// images cuts [… h w] into planes.
func images(shape []int) (n, h, w int) {
	last := len(shape) - 2
	return driver.Numel(shape[:last]), shape[last], shape[last+1]
}

// window is where the i-th window's elements begin and end in a dimension of length n.
// It began first elements further down, in the padding.
func window(i, kernel, stride, padding, n int) (from, to, first int) {
	at := i*stride - padding
	return max(0, at), min(at+kernel, n), max(0, -at)
}

// maxPool: x; writes y and, as uint8 or int32, places row-major in the window. F: kernel,
// stride, padding.
func maxPool[T float32 | float64](a *driver.Args) {
	if at := &a.Out[1]; at.Type == driver.Uint8 {
		maxPoolTo[T](a, driver.Of[uint8](at))
	} else {
		maxPoolTo[T](a, driver.Of[int32](at))
	}
}

func maxPoolTo[T float32 | float64, I uint8 | int32](a *driver.Args, at []I) {
	n, h, w := images(a.In[0].Shape)
	_, oh, ow := images(a.Out[0].Shape)
	x, y := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	kernel, stride, padding := int(a.F[0]), int(a.F[1]), int(a.F[2])
	from, to := inside(kernel, stride, padding, w, ow)
	pitch := w + 2*padding
	par.Range(a.Threads, n, channelGrain(h*w), func(lo, hi int) {
		// The rows that windows are of, with padding that is never greater: so all have all their elements.
		b := takeBuffers[T]()
		defer b.give()
		strip := b[0][:]
		padded, lowest := kernel*pitch < len(strip), T(math.Inf(-1))
		if padded {
			for i := range strip {
				strip[i] = lowest
			}
		}
		for p := lo; p < hi; p++ {
			image := x[p*h*w:][:h*w]
			for i := range oh {
				r0, r1, rowFirst := window(i, kernel, stride, padding, h)
				out := (p*oh + i) * ow
				best, place := y[out:out+ow], at[out:out+ow]
				begin, end := from, from // of what vector code does
				switch {
				case padded:
					for r := r0; r < r1; r++ {
						copy(strip[(r-r0)*pitch+padding:], image[r*w:][:w])
					}
					begin, end = 0, maxPoolRow(best, place, strip, pitch, r1-r0, kernel, stride, rowFirst*kernel)
				case to > from:
					end += maxPoolRow(best[from:to], place[from:to], image[r0*w+from*stride-padding:], w, r1-r0, kernel, stride, rowFirst*kernel)
				}
				for j := 0; j < ow; j++ {
					if j == from {
						j = max(from, min(to, end))
					}
					if j == ow {
						break
					}
					if begin <= j && j < end && best[j] != lowest { // else its place may be in the padding
						continue
					}
					c0, c1, first := window(j, kernel, stride, padding, w)
					top, where := image[r0*w+c0], rowFirst*kernel+first
					for r := r0; r < r1; r++ {
						k := (rowFirst+r-r0)*kernel + first
						for c, v := range image[r*w+c0 : r*w+c1] {
							if v > top || v != v {
								top, where = v, k+c
							}
						}
					}
					best[j], place[j] = top, I(where)
				}
			}
		}
	})
}

// inside are the windows, of out over n elements, that have all their elements.
func inside(kernel, stride, padding, n, out int) (from, to int) {
	from = (padding + stride - 1) / stride
	return from, max(from, min((n+padding-kernel+stride)/stride, out))
}

// maxPoolRow makes as many maxima as there is vector code for.
func maxPoolRow[T float32 | float64, I uint8 | int32](best []T, places []I, x []T, w, rows, kernel, stride, first int) int {
	p, ok := any(places).([]uint8)
	if !ok || f32(best) == nil {
		return 0
	}
	return kern.MaxPoolRow(f32(best), p, f32(x), w, rows, kernel, stride, first)
}

// maxPoolBackward: dy, places; writes dx. F as forward.
func maxPoolBackward[T float32 | float64](a *driver.Args) {
	if at := &a.In[1]; at.Type == driver.Uint8 {
		maxPoolFrom[T](a, driver.Of[uint8](at))
	} else {
		maxPoolFrom[T](a, driver.Of[int32](at))
	}
}

func maxPoolFrom[T float32 | float64, I uint8 | int32](a *driver.Args, at []I) {
	n, h, w := images(a.Out[0].Shape)
	_, oh, ow := images(a.In[0].Shape)
	dy, dx := driver.Of[T](&a.In[0]), driver.Of[T](&a.Out[0])
	kernel, stride, padding := int(a.F[0]), int(a.F[1]), int(a.F[2])
	offset := make([]int, kernel*kernel) // of a place in the image
	for k := range offset {
		offset[k] = k/kernel*w + k%kernel
	}
	par.Range(a.Threads, n, channelGrain(h*w), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			image := dx[p*h*w:][:h*w]
			if maxPoolBack(image, dy[p*oh*ow:][:oh*ow], at[p*oh*ow:][:oh*ow], w, oh, ow, kernel, stride, padding) {
				continue
			}
			clear(image)
			for i := range oh {
				out := (p*oh + i) * ow
				g, place := dy[out:out+ow], at[out:out+ow]
				corner := (i*stride-padding)*w - padding
				for j, v := range g {
					image[corner+j*stride+offset[place[j]]] += v
				}
			}
		}
	})
}

// maxPoolBack makes an image if there is vector code for that.
func maxPoolBack[T float32 | float64, I uint8 | int32](image, dy []T, places []I, w, oh, ow, kernel, stride, padding int) bool {
	p, ok := any(places).([]uint8)
	if !ok || f32(image) == nil {
		return false
	}
	return kern.MaxPoolBack(f32(image), f32(dy), p, w, oh, ow, kernel, stride, padding)
}
