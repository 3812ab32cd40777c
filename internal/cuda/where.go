package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	for _, name := range []string{"where", "masked fill"} { // the last input is of bools
		register(name, all, driver.Kernel{Strided: true, Mixed: true, Run: each("where", name)})
	}
}
