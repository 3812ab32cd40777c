package cuda

func init() {
	elementwise("exp", floats, "exp", "log", "sqrt", "square", "pow",
		"exp backward", "log backward", "sqrt backward", "square backward", "pow backward")
}
