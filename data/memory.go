package data

import (
	"fmt"

	"github.com/snug-ml/snug/internal/driver"
)

// memory is a dataset that lies in memory whole.
type memory struct {
	x    Values
	y    []int64
	spec Spec
	n    int
}

// Slices is a dataset of values that lie in memory, sample after sample; it keeps both
// slices. The Spec's Type is that of x.
func Slices[T Element](x []T, y []int64, s Spec) (Dataset, error) {
	m := &memory{y: y, spec: s}
	m.x, m.spec.Type = valuesOf(x)
	if err := m.spec.check(); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	size, targets := driver.Numel(s.Shape), driver.Numel(s.Target)
	m.n = len(y) / targets
	if len(y)%targets != 0 || len(x) != m.n*size {
		return nil, fmt.Errorf("data: %d values of samples %v and %d of targets %v do not fit", len(x), s.Shape, len(y), s.Target)
	}
	if i, err := s.checkLabels(y); err != nil {
		return nil, fmt.Errorf("data: sample %d: %w", i/targets, err)
	}
	return m, nil
}

func (m *memory) Len() int   { return m.n }
func (m *memory) Spec() Spec { return m.spec }

func (m *memory) Read(i int, x Values, y []int64) error {
	size := driver.Numel(m.spec.Shape)
	x.copyFrom(m.x.slice(i*size, (i+1)*size))
	copy(y, m.y[i*len(y):])
	return nil
}

// part is a range of another dataset.
type part struct {
	Dataset
	from, n int
}

// Part is the samples from … to-1 of a dataset, to hold some back for validation.
func Part(ds Dataset, from, to int) (Dataset, error) {
	if from < 0 || to < from || to > ds.Len() {
		return nil, fmt.Errorf("data: samples %d to %d of %d", from, to, ds.Len())
	}
	return part{ds, from, to - from}, nil
}

func (p part) Len() int                              { return p.n }
func (p part) Read(i int, x Values, y []int64) error { return p.Dataset.Read(p.from+i, x, y) }
