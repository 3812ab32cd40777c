package host

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"
)

// File is a temporary file as a memory.Source: what Map returns is a stretch of it. It
// grows where no stretch that was given back is long enough, and takes the disk's room
// at once: a full disk is an error of Map, not a fault later.
type File struct {
	mu     sync.Mutex
	f      *os.File
	size   int64
	free   []stretch // by offset, with gaps between them
	mapped map[*byte]stretch
}

type stretch struct{ off, bytes int64 }

// Maps says that this system maps files into memory; a test may say that it does not.
var Maps = maps

// fileAlign is what stretches begin at: a multiple of every system's page.
const fileAlign = 64 << 10

// NewFile makes a file in dir, which on Unix nobody else can see and which is gone with
// the process; elsewhere Close removes it.
func NewFile(dir string) (*File, error) {
	f, err := os.CreateTemp(dir, "snug-*.tmp")
	if err != nil {
		return nil, err
	}
	if err := unlink(f); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return &File{f: f, mapped: map[*byte]stretch{}}, nil
}

// Map returns bytes of the file, whatever they hold.
func (f *File) Map(bytes int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.take(bytes)
	if err != nil {
		return nil, err
	}
	mem, err := mapFile(f.f, s, int(bytes))
	if err != nil {
		f.give(s)
		return nil, fmt.Errorf("%s: mapping %d bytes: %w", f.f.Name(), bytes, err)
	}
	f.mapped[unsafe.SliceData(mem)] = s
	return mem, nil
}

// Unmap gives a stretch back to the file, for the next Map.
func (f *File) Unmap(mem []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.mapped[unsafe.SliceData(mem)]
	delete(f.mapped, unsafe.SliceData(mem))
	unmapFile(mem)
	f.give(s)
}

// Spot is a stretch of a file that is read and written where the system maps none.
type Spot struct {
	f *File
	s stretch
}

// Spot is for so many bytes.
func (f *File) Spot(bytes int64) (*Spot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.take(bytes)
	if err != nil {
		return nil, err
	}
	return &Spot{f, s}, nil
}

// Copy writes mem there, or reads it from there.
func (p *Spot) Copy(mem []byte, write bool) (err error) {
	if write {
		_, err = p.f.f.WriteAt(mem, p.s.off)
	} else {
		_, err = p.f.f.ReadAt(mem, p.s.off)
	}
	return err
}

// Free gives it back to the file.
func (p *Spot) Free() {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.give(p.s)
}

// take finds a stretch that is long enough, or makes the file longer.
func (f *File) take(bytes int64) (stretch, error) {
	s := stretch{f.size, (bytes + fileAlign - 1) / fileAlign * fileAlign}
	if i := slices.IndexFunc(f.free, func(r stretch) bool { return r.bytes >= s.bytes }); i >= 0 {
		r := &f.free[i]
		s.off = r.off
		if r.off, r.bytes = r.off+s.bytes, r.bytes-s.bytes; r.bytes == 0 {
			f.free = slices.Delete(f.free, i, i+1)
		}
		return s, nil
	}
	if err := reserve(f.f, s); err != nil {
		return s, fmt.Errorf("%s: %d bytes more than %d: %w", f.f.Name(), s.bytes, f.size, err)
	}
	f.size += s.bytes
	return s, nil
}

func (f *File) give(s stretch) {
	i, _ := slices.BinarySearchFunc(f.free, s, func(a, b stretch) int { return int(a.off - b.off) })
	f.free = slices.Insert(f.free, i, s)
	if i+1 < len(f.free) && s.off+s.bytes == f.free[i+1].off {
		f.free[i].bytes += f.free[i+1].bytes
		f.free = slices.Delete(f.free, i+1, i+2)
	}
	if i > 0 && f.free[i-1].off+f.free[i-1].bytes == f.free[i].off {
		f.free[i-1].bytes += f.free[i].bytes
		f.free = slices.Delete(f.free, i, i+1)
	}
}

// Close ends the file, once nothing of it is mapped any more.
func (f *File) Close() error { return errors.Join(f.f.Close(), removeFile(f.f)) }

// fill writes zeros, where the system has no other way to reserve.
func fill(f *os.File, s stretch) error {
	zeros := make([]byte, min(s.bytes, 1<<20))
	for at := int64(0); at < s.bytes; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), s.bytes-at)], s.off+at); err != nil {
			return err
		}
	}
	return nil
}

// Copy is copy; where the disk of a file fails that one of the two is mapped from, it
// returns an error.
func Copy(to, from []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("copying %d bytes: %v", len(from), fault)
		}
	}()
	copy(to, from)
	return nil
}
