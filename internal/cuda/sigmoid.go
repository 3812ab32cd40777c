package cuda

func init() {
	elementwise("sigmoid", floats, "sigmoid", "sigmoid backward", "tanh", "tanh backward",
		"silu", "silu backward", "softplus", "softplus backward")
}
