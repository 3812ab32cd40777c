package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	elementwise("compare", all, "equal", "not equal", "less", "less or equal")
	elementwise("compare", []driver.DType{driver.Bool}, "not")
}
