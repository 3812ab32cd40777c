package cuda

func init() {
	elementwise("leaky", floats, "leaky relu", "leaky relu backward", "elu", "elu backward")
}
