package driver

import "errors"

// ErrDeviceLost is what every call of a device answers after it failed beyond repair.
var ErrDeviceLost = errors.New("the device is lost")

// Source is raw memory, as package memory wants it.
type Source interface {
	Map(bytes int64) ([]byte, error)
	Unmap([]byte)
}

// Device is what a backend has beside kernels whose memory Go code cannot touch: slices of
// it are addresses alone. Work is queued, and done in the order given. An error of a call
// may be that of work before it.
type Device interface {
	Name() string   // the card's
	Bytes() int64   // of memory that is there for this process
	Growable() bool // whether Memory gives addresses first and memory later
	Memory() Source
	Pinned() Source        // host memory, which Start copies while other work runs
	Queue() any            // what a kernel gets as Args.Queue
	Enter() (leave func()) // binds the goroutine's thread to the device

	Clear(dst []byte) error
	Upload(dst, src []byte) error                   // from Go's memory, which has been read when it returns
	Download(dst, src []byte) error                 // to Go's memory; waits
	Receive(dst []byte, d Device, src []byte) error // from another device of the same backend

	// Start begins a copy to the device or, out, from it, beside the work that is queued
	// from now on. The host's side is pinned memory, or else any that via copies from and to.
	Start(dst, src []byte, out bool, via func(dst, src []byte) error) Copy
	Wait() error // for all that was queued
	Err() error  // ErrDeviceLost, once it is
	Close() error
}

// Copy is one under way.
type Copy interface {
	// Join lets what is queued from now on come after the copy. It is called once.
	Join() error
}
