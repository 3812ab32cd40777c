package nn

import (
	"errors"
	"fmt"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/join"
)

// Lerp moves each parameter and buffer of dst to dst + w·(src − dst) of that name in src:
// averaged weights are a second model and this after each step. A w of 1 copies, as it
// does, for every w, counts that are no floats. The two may lie on different devices and
// have different types. What would be refused is seen before anything moves.
func Lerp(dst, src any, w float64) error {
	from := map[string]*snug.Param{}
	for name, p := range Params(src) {
		from[name] = p
	}
	var errs []error
	n := 0
	for name, p := range Params(dst) {
		n++
		q := from[name]
		switch {
		case q == nil:
			errs = append(errs, fmt.Errorf("no %s in %T", name, src))
		case p.Device() == nil || q.Device() == nil:
			errs = append(errs, fmt.Errorf("%s is not on a device: call nn.Init", name))
		case fmt.Sprint(p.Shape()) != fmt.Sprint(q.Shape()):
			errs = append(errs, fmt.Errorf("%w: %s is %v, got %v", snug.ErrShape, name, p.Shape(), q.Shape()))
		default:
			if err := p.Ready(); errors.Is(err, snug.ErrInUse) {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) == 0 && n != len(from) {
		errs = append(errs, fmt.Errorf("%T has %d parameters and %T %d", dst, n, src, len(from)))
	}
	if err := join.Errors(errs...); err != nil {
		return fmt.Errorf("lerp: %w", err)
	}
	for name, p := range Params(dst) {
		if err := p.Lerp(from[name], w); err != nil {
			return fmt.Errorf("lerp: %w", err)
		}
	}
	return nil
}
