//go:build !amd64 || race

package kern

// Never called: the level is portable.

func normVec(planes, n int, dst, x, channels *float32)                                      {}
func normAddVec(planes, n int, dst, x, y, channels *float32)                                {}
func normBackVec(planes, n int, dst, grad, x, channels *float32, ahead int)                 {}
func passBackVec(planes, n int, dst, grad, x, channels *float32, ahead int)                 {}
func momentsVec(planes, n int, x, channels *float32, totals *float64, ahead int)            {}
func productsVec(planes, n int, grad, x, channels *float32, totals *float64, ahead int)     {}
func passProductsVec(planes, n int, grad, x, channels *float32, totals *float64, ahead int) {}
func passAddProductsVec(planes, n int, dst, grad, x, y, channels *float32, totals *float64, ahead int) {
}
