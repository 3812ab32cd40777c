package snug

import (
	"fmt"
	"sync"

	"github.com/snug-ml/snug/internal/dry"
	"github.com/snug-ml/snug/internal/host"
	"github.com/snug-ml/snug/internal/join"
	"github.com/snug-ml/snug/memory"
)

// disks are a device's files, by directory.
type disks struct {
	mu sync.Mutex
	of map[string]disk
}

type disk struct {
	pool *memory.Pool
	file *host.File // nil in a dry run
}

const diskLimit = 1 << 50 // the disk itself refuses first

// Disk is the allocator of a temporary file in dir, mapped into memory where the system does
// that; elsewhere it counts, and each storage has a spot in the file. It is made when
// first asked for, grows as far as the disk or a limit that is set lets it, and goes with
// the device.
func (d *Device) Disk(dir string) (*memory.Pool, error) {
	d.disks.mu.Lock()
	defer d.disks.mu.Unlock()
	if k, ok := d.disks.of[dir]; ok {
		return k.pool, nil
	}
	var k disk
	var src memory.Source = dry.Source{}
	if d.values {
		f, err := host.NewFile(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: a file to offload to: %w", d.name, err)
		}
		if k.file = f; host.Maps {
			src = f
		}
	}
	k.pool = memory.New(src, memory.Config{LimitBytes: diskLimit})
	if d.disks.of == nil {
		d.disks.of = map[string]disk{}
	}
	d.disks.of[dir] = k
	return k.pool, nil
}

// spot is where a storage lies in the file of a pool that counts alone, nil in other ones.
func (d *disks) spot(pool *memory.Pool, bytes int64) (*host.Spot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.of {
		if k.pool == pool && k.file != nil && !host.Maps {
			return k.file.Spot(bytes)
		}
	}
	return nil, nil
}

func (d *disks) close() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.of {
		if k.pool.Close(); k.file != nil {
			err = join.Errors(err, k.file.Close())
		}
	}
	d.of = nil
	return err
}
