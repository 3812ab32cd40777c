package cuda

func init() { elementwise("relu", floats, "relu", "relu backward") }
