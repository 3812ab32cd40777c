package nn_test

import (
	ctx "context"
	"testing"

	"github.com/snug-ml/snug"
	"github.com/snug-ml/snug/internal/testdevice"
)

type context = ctx.Context

func open(t testing.TB) *snug.Device {
	t.Helper()
	d, err := snug.Open(testdevice.Name, snug.Config{LimitBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
