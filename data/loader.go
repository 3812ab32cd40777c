package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"github.com/snug-ml/snug/internal/driver"
)

// LoaderConfig says how samples become batches. The zero value reads them in order, in
// the caller's goroutine.
type LoaderConfig struct {
	Seed     uint64    `json:"seed"`
	Shuffle  bool      `json:"shuffle"`   // another order each epoch, from seed and epoch
	DropLast bool      `json:"drop_last"` // leave out what does not fill a batch
	Workers  int       `json:"workers"`   // goroutines that load ahead, a batch each; they change no result
	Augment  []Augment `json:"-"`         // applied in this order
	// Mean and Std are per channel, the first dimension of a sample, and in units of the
	// floats: bytes are divided by 255 first. Nil: not normalized.
	Mean []float32 `json:"mean,omitempty"`
	Std  []float32 `json:"std,omitempty"`
}

// DefaultLoaderConfig shuffles, keeps the last batch, and loads ahead.
func DefaultLoaderConfig() LoaderConfig {
	return LoaderConfig{Shuffle: true, Workers: min(4, runtime.GOMAXPROCS(0))}
}

// LoaderState is a position: so many samples of this epoch have been given.
type LoaderState struct {
	Epoch  int64 `json:"epoch"`
	Sample int   `json:"sample"`
}

// Loader gives a dataset's batches, epoch after epoch. As JSON it is its position.
type Loader struct {
	ds   Dataset
	spec Spec
	c    LoaderConfig

	mu   sync.Mutex
	at   LoaderState
	busy bool // somebody ranges over Batches
}

func NewLoader(ds Dataset, c LoaderConfig) (*Loader, error) {
	l := &Loader{ds: ds, spec: ds.Spec(), c: c}
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return l, nil
}

func (l *Loader) check() error {
	if err := l.spec.check(); err != nil {
		return err
	}
	if l.ds.Len() < 1 {
		return errors.New("dataset is empty")
	}
	if l.c.Workers < 0 {
		return fmt.Errorf("%d workers, want 0 or more", l.c.Workers)
	}
	if l.c.Mean == nil && l.c.Std == nil {
		return nil
	}
	channels := 0
	if len(l.spec.Shape) > 0 {
		channels = l.spec.Shape[0]
	}
	if l.spec.Type == driver.Int64 || len(l.c.Mean) != channels || len(l.c.Std) != channels {
		return fmt.Errorf("%d means and %d deviations for %v samples of shape %v, want one a channel", len(l.c.Mean), len(l.c.Std), l.spec.Type, l.spec.Shape)
	}
	for _, d := range l.c.Std {
		if !(d > 0) {
			return fmt.Errorf("deviations %v, want numbers above 0", l.c.Std)
		}
	}
	return nil
}

// State is the position. A batch counts as given once the body of the loop has it, so
// what is saved there goes on with the next; the last one of an epoch moves the position
// to the start of the next epoch.
func (l *Loader) State() LoaderState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// SetState sets the position, but not while somebody ranges over Batches.
func (l *Loader) SetState(s LoaderState) error {
	if s.Epoch < 0 || s.Sample < 0 || s.Sample > l.ds.Len() {
		return fmt.Errorf("data: epoch %d, sample %d of %d is no position", s.Epoch, s.Sample, l.ds.Len())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		return errors.New("data: the loader is in use")
	}
	l.at = s
	return nil
}

func (l *Loader) MarshalJSON() ([]byte, error) { return json.Marshal(l.State()) }

func (l *Loader) UnmarshalJSON(b []byte) error {
	var s LoaderState
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	return l.SetState(s)
}

// Batches gives the rest of the epoch in batches of size samples; after that, the next
// call gives the next epoch. An error ends it and leaves the position before the batch
// that failed. Its goroutines have ended when the loop is left, by whatever way.
func (l *Loader) Batches(ctx context.Context, size int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		at, err := l.begin(size)
		if err != nil {
			yield(Batch{}, fmt.Errorf("data: %w", err))
			return
		}
		defer l.end()
		end := l.ds.Len()
		if l.c.DropLast {
			end -= (end - at.Sample) % size
		}
		if at.Sample >= end {
			l.move(at.Epoch, end, end)
			return
		}
		p := newPass(l, at, end, size)
		defer p.stop()
		for {
			b, to, err := p.next(ctx)
			if err != nil {
				yield(Batch{}, fmt.Errorf("data: %w", err))
				return
			}
			l.move(at.Epoch, to, end)
			if !yield(b, nil) || to >= end {
				return
			}
		}
	}
}

func (l *Loader) begin(size int) (LoaderState, error) {
	if size < 1 || l.c.DropLast && size > l.ds.Len() {
		return LoaderState{}, fmt.Errorf("batches of %d out of %d samples", size, l.ds.Len())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		return LoaderState{}, errors.New("the loader is in use")
	}
	l.busy = true
	return l.at, nil
}

func (l *Loader) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
}

func (l *Loader) move(epoch int64, to, end int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = LoaderState{epoch, to}
	if to >= end {
		l.at = LoaderState{epoch + 1, 0}
	}
}

// order is the samples of an epoch; nil where they come as they lie.
func (l *Loader) order(epoch int64) []int {
	if !l.c.Shuffle {
		return nil
	}
	return stream(l.c.Seed, forOrder, uint64(epoch), 0).Perm(l.ds.Len())
}

// Spec is the dataset's.
func (l *Loader) Spec() Spec { return l.spec }
