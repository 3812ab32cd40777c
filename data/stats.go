package data

import (
	"errors"
	"fmt"
	"math"

	"github.com/snug-ml/snug/internal/driver"
)

// MeanStd is each channel's mean and standard deviation over a dataset, as a LoaderConfig
// wants them: those of bytes are divided by 255. It reads every sample once.
func MeanStd(ds Dataset) (mean, std []float32, err error) {
	s := ds.Spec()
	if err := s.check(); err != nil {
		return nil, nil, fmt.Errorf("data: %w", err)
	}
	if len(s.Shape) == 0 || s.Type == driver.Int64 || ds.Len() == 0 {
		return nil, nil, errors.New("data: mean and deviation are of samples with channels that are no integers, one sample at least")
	}
	channels, size := s.Shape[0], driver.Numel(s.Shape[1:])
	sum, square := make([]float64, channels), make([]float64, channels)
	add := func(c int, v float64) { sum[c] += v; square[c] += v * v }
	b := newBatch(s, 1)
	for i := range ds.Len() {
		if err := ds.Read(i, b.X, b.Y); err != nil {
			return nil, nil, fmt.Errorf("data: sample %d: %w", i, err)
		}
		for k, v := range b.X.U8 {
			add(k/size, float64(v)/255)
		}
		for k, v := range b.X.F32 {
			add(k/size, float64(v))
		}
	}
	n := float64(ds.Len() * size)
	for c := range channels {
		m := sum[c] / n
		mean = append(mean, float32(m))
		std = append(std, float32(math.Sqrt(max(0, square[c]/n-m*m))))
	}
	return mean, std, nil
}
