package par

// pause waits about half a microsecond without loading the memory bus or a sibling hyperthread.
//
//go:noescape
func pause()
