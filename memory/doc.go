// Package memory is a caching allocator over a device's raw memory, with statistics,
// limits, snapshots and an out-of-memory error that says what the memory was for. It
// knows nothing of tensors.
//
// # Sizes
//
// Every block is a multiple of 512 bytes, one of zero bytes 512. Memory comes from the
// device in segments: 2 MiB for requests up to 1 MiB, 20 MiB for those below 10 MiB,
// the request rounded up to 2 MiB beyond; the last one is as long as the limit leaves
// room for. A request takes the smallest free chunk that is long enough, among equals
// that of the oldest segment and in it the first; the rest stays free. A freed block
// joins its free neighbours. Each queue has segments of its own.
//
// With Config.Growable a segment is a range of addresses that gets memory, and loses
// it, in granules of 2 MiB where blocks need it: nothing free is lost between blocks
// that are in use. With Config.Moving they are of 256 KiB, and free ones move there before
// the device is asked for more, so that reserved memory is little more than what was
// allocated at once. Pages that move cost about half of what new ones do. Pool.Round says
// that a step begins: where steps ask for the same, their blocks are laid out together, so
// that from the third or fourth on nothing moves and reserved memory stays within a few
// percent of what is allocated at once.
//
// # The same decisions everywhere
//
// Every decision follows from sizes and from the order of calls, never from an address.
// A pool over a source without memory therefore has, after the same calls, the same
// statistics, to the byte: so a dry run predicts a real one's peak.
//
// # Queues
//
// A block belongs to the queue that it was requested on, which may reuse it as soon as
// it is freed. Another queue that reads or writes it is named by Block.UsedOn; freed,
// the block then is pending until what that queue had to do at this moment is done. The
// CPU has one queue, 0, and nothing is ever pending.
//
// # Running out
//
// Before Alloc fails it looks at cached chunks, at pending ones, asks the device for a
// segment, waits for the pending, gives cached segments back and asks again; then it
// calls Request.Rescue, without a lock held, and if this freed anything tries all of it
// once more. The error is an *OutOfMemoryError, which is ErrOutOfMemory for errors.Is.
// It holds numbers and strings only, so that keeping it keeps no memory. A failed
// request leaves allocated bytes as they were; reserved bytes may have become fewer.
//
// # What the statistics say
//
// Allocated counts whole blocks, Requested what was asked for, Used what of that can
// still be reached, where the pool was told by Block.SetUsed that only a view is left.
// Reserved is what the device gave; Reserved less Active is cached. Stats are plain and
// comparable, Snapshot has every block with its owner, Summary is a table for people,
// Live a list for a test that looks for leaks.
//
// In builds with the tag snugdebug blocks are filled with 0xFF, a NaN in every float
// format, when they are handed out and when they are freed. On the simulated CUDA device each
// has memory of its own there: a kernel that goes beyond its blocks, or comes too late, fails.
package memory
