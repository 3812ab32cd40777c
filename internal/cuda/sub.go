package cuda

func init() { elementwise("sub", floats, "sub", "shift", "div", "div backward") }
