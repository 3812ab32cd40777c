package cuda

import "github.com/snug-ml/snug/internal/driver"

func init() {
	register("weighted", all[:len(all)-1], driver.Kernel{Run: func(a *driver.Args) {
		launch(a, "mean", "weighted", [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0, a.F[0], &a.Out[0], operandOf(&a.In[0], a.In[0].Shape))
	}})
}
