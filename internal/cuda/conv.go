package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("conv", floats, driver.Kernel{Run: conv, Workspace: convWork})
	register("conv backward data", floats, driver.Kernel{Run: convData, Workspace: convDataWork})
	register("conv backward weights", floats, driver.Kernel{Run: convWeights, Workspace: convWeightsWork})
}

// convolution is struct Conv of conv.cu.
type convolution struct{ n, c, h, w, o, kh, kw, oh, ow, stride, pad, dilation, groups int }

func newConvolution(f []float64, image, weight, result *driver.Array) convolution {
	x, w, y := image.Shape, weight.Shape, result.Shape
	return convolution{x[0], x[1], x[2], x[3], w[0], w[2], w[3], y[2], y[3], int(f[0]), int(f[1]), int(f[2]), int(f[3])}
}

func (v convolution) words() (w []uint64) {
	for _, n := range []int{v.n, v.c, v.h, v.w, v.o, v.kh, v.kw, v.oh, v.ow, v.stride, v.pad, v.dilation, v.groups} {
		w = append(w, uint64(n))
	}
	return w
}

// fewChannels of a group's result, or fewPixels in all, would leave most of a tile empty: a
// thread computes one result then, in the order that a tile does.
const fewChannels, fewPixels = 8, 16

// tileCols is how many columns the tiles of a product have.
const tileCols = 128

// tileRows is how many rows, and how kernels for them end.
func tileRows(channels int) (int, string) {
	if channels > 64 {
		return 128, "128"
	}
	return 64, "64"
}

func ceil(n, by int) int { return (n + by - 1) / by }

func convWork(a *driver.Args) int64 {
	return newConvolution(a.F, &a.In[0], &a.In[1], &a.Out[0]).libraryWork(a.Out[0].Type)
}

func convDataWork(a *driver.Args) int64 {
	return newConvolution(a.F, &a.Out[0], &a.In[1], &a.In[0]).libraryWork(a.Out[0].Type)
}

// conv: x, w and a bias that may be missing. F: stride, padding, dilation, groups.
func conv(a *driver.Args) {
	v, y := newConvolution(a.F, &a.In[0], &a.In[1], &a.Out[0]), &a.Out[0]
	if y.Len() == 0 {
		return
	}
	var bias *driver.Array
	if len(a.In) == 3 {
		bias = &a.In[2]
	}
	if v.byLibrary(a, forwardPass, &a.In[0], &a.In[1], y, bias) {
		return
	}
	channels, suffix := v.o/v.groups, suffixes[y.Type]
	if channels < fewChannels || v.n*v.oh*v.ow <= fewPixels {
		launch(a, "conv", "conv_direct"+suffix, line(y.Len(), threads), [3]int{threads, 1, 1}, 0, v.words(), &a.In[0], &a.In[1], bias, y)
		return
	}
	rows, size := tileRows(channels)
	blocks := ceil(channels, rows) * ceil(v.n*v.oh*v.ow, tileCols) * v.groups
	launch(a, "conv", "conv"+size+suffix, [3]int{blocks, 1, 1}, [3]int{threads, 1, 1}, 0, v.words(), &a.In[0], &a.In[1], bias, y)
}

// convData: dy, w; writes dx. Pixels of dx whose distance is the stride meet the same
// weights, so that each tile has one kind of them.
func convData(a *driver.Args) {
	v, dx := newConvolution(a.F, &a.Out[0], &a.In[1], &a.In[0]), &a.Out[0]
	if dx.Len() == 0 {
		return
	}
	if v.byLibrary(a, dataPass, dx, &a.In[1], &a.In[0], nil) {
		return
	}
	channels, suffix := v.c/v.groups, suffixes[dx.Type]
	if channels < fewChannels || v.n*v.h*v.w <= fewPixels {
		launch(a, "conv", "conv_direct_data"+suffix, line(dx.Len(), threads), [3]int{threads, 1, 1}, 0, v.words(), &a.In[0], &a.In[1], dx)
		return
	}
	rows, size := tileRows(channels)
	pixels := v.n * ceil(v.h, v.stride) * ceil(v.w, v.stride)
	blocks := ceil(channels, rows) * ceil(pixels, tileCols) * v.stride * v.stride * v.groups
	launch(a, "conv", "conv_data"+size+suffix, [3]int{blocks, 1, 1}, [3]int{threads, 1, 1}, 0, v.words(), &a.In[0], &a.In[1], dx)
}

// convWeights: x, dy; writes dw.
func convWeights(a *driver.Args) {
	v, dw := newConvolution(a.F, &a.In[0], &a.Out[0], &a.In[1]), &a.Out[0]
	if dw.Len() == 0 {
		return
	}
	if v.byLibrary(a, weightsPass, &a.In[0], dw, &a.In[1], nil) {
		return
	}
	suffix := suffixes[dw.Type]
	if v.o/v.groups < fewChannels {
		block := threads
		if v.n*v.oh*v.ow < 16*threads {
			block = threads / 4
		}
		launch(a, "conv", "conv_direct_weights"+suffix, [3]int{dw.Len(), 1, 1}, [3]int{block, 1, 1}, 0, v.words(), &a.In[0], &a.In[1], dw)
		return
	}
	_, size := tileRows(v.o / v.groups)
	tiles, parts := v.weightTiles()
	launch(a, "conv", "conv_weights"+size+suffix, [3]int{tiles * parts, 1, 1}, [3]int{threads, 1, 1}, 0, v.words(), &a.In[0], &a.In[1], dw, a.Work, parts)
	if parts > 1 {
		launch(a, "conv", "conv_sum"+suffix, line(dw.Len(), threads), [3]int{threads, 1, 1}, 0, dw.Len(), a.Work, parts, dw)
	}
}

// weightTiles is how many tiles the weights' gradient has, and in how many parts the pixels
// of each are summed, so that there is work for a whole device.
func (v convolution) weightTiles() (tiles, parts int) {
	rows, _ := tileRows(v.o / v.groups)
	tiles = v.groups * ceil(v.o/v.groups, rows) * ceil(v.c/v.groups*v.kh*v.kw, tileCols)
	return tiles, max(1, min(64, 512/tiles, v.n*v.oh*v.ow/512))
}

func convWeightsWork(a *driver.Args) int64 {
	v, dw := newConvolution(a.F, &a.In[0], &a.Out[0], &a.In[1]), &a.Out[0]
	if dw.Len() == 0 || v.o/v.groups < fewChannels {
		return 0
	}
	bytes := v.libraryWork(dw.Type)
	if _, parts := v.weightTiles(); parts > 1 {
		bytes = max(bytes, int64(parts)*int64(dw.Len())*accSize(dw.Type))
	}
	return bytes
}

// accSize is of the type that elements are computed in.
func accSize(t driver.DType) int64 {
	if t == driver.Float64 {
		return 8
	}
	return 4
}
