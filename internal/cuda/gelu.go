package cuda

func init() {
	elementwise("gelu", floats, "gelu", "gelu backward", "gelu tanh", "gelu tanh backward")
}
