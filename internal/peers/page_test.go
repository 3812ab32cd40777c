package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIntoPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("# Page\n\nBy hand.\n\n## One\n\nold\n\n## Two\n\nkept\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range [][2]string{{"One", "new\n"}, {"Three", "added\n"}} {
		if err := intoPage(file, s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if want := "# Page\n\nBy hand.\n\n## One\n\nnew\n\n## Two\n\nkept\n\n## Three\n\nadded\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; not %q", got, err, want)
	}
}

func TestAnyRow(t *testing.T) {
	for only, ok := range map[string]bool{"": true, "steps": true, "memory: ": true, "stepz": false} {
		if err := anyRow(tables, only); ok != (err == nil) || !ok && !strings.Contains(err.Error(), "steps: ") {
			t.Errorf("%q: %v", only, err)
		}
	}
}
