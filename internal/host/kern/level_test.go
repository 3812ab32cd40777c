package kern

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	forced := os.Getenv("SNUG_LEVEL")
	if err := ForceLevel(forced); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if forced != "" {
		machine = level // tests of all levels, too
	}
	os.Exit(m.Run())
}

// levels calls f at each level that this machine has.
func levels(t *testing.T, f func(t *testing.T)) {
	for l := machine; l >= portable; l-- {
		t.Run(levelNames[l], func(t *testing.T) {
			useLevel(t, l)
			f(t)
		})
	}
}

func useLevel(t testing.TB, l int) {
	old := level
	level = l
	t.Cleanup(func() { level = old })
}

func TestForceLevel(t *testing.T) {
	useLevel(t, level) // comes back
	if err := ForceLevel("portable"); err != nil || level != portable {
		t.Errorf("level %s, error %v", levelNames[level], err)
	}
	if err := ForceLevel("sse"); err == nil || level != portable {
		t.Errorf("level %s, error %v for no level", levelNames[level], err)
	}
}
