package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("weighted", all[:len(all)-1], driver.Kernel{Run: func(a *driver.Args) {
		launch(a, "mean", "weighted", one, one, 0, a.F[0], &a.Out[0], operandOf(&a.In[0], a.In[0].Shape))
	}})
}
