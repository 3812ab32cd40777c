package cuda

func init() {
	elementwise("clamp", floats, "clamp", "clamp backward", "hardswish", "hardswish backward", "abs", "abs backward")
}
