package host

import (
	"fmt"
	"os"
	"testing"

	"github.com/snug-ml/snug/internal/host/kern"
)

func TestMain(m *testing.M) {
	if err := kern.ForceLevel(os.Getenv("SNUG_LEVEL")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
