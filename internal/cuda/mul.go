package cuda

func init() { elementwise("mul", floats, "mul") }
