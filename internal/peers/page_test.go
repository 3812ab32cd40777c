package main

import (
	"os"
	"path/filepath"
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
