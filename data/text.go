package data

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/snug-ml/snug/internal/driver"
)

// Corpus is a text as a dataset for a language model: windows of characters, and for
// each character the one after it. Its classes are the vocabulary, the characters that
// occur, in order of their code points.
type Corpus struct {
	tokens         []int32
	vocabulary     []string
	index          map[rune]int32
	window, stride int
}

// Text reads a UTF-8 file as a Corpus.
func Text(path string, window, stride int) (*Corpus, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("data: text: %w", err)
	}
	c, err := NewCorpus(string(b), window, stride)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, path)
	}
	return c, nil
}

// NewCorpus makes samples of window characters, each beginning stride after the one
// before it: a stride of window reads the text once an epoch.
func NewCorpus(text string, window, stride int) (*Corpus, error) {
	if window < 1 || stride < 1 {
		return nil, fmt.Errorf("data: text: windows of %d characters every %d, want 1 or more", window, stride)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("data: text: not UTF-8")
	}
	runes := []rune(text)
	if len(runes) <= window {
		return nil, fmt.Errorf("data: text: %d characters, want more than the window's %d", len(runes), window)
	}
	c := &Corpus{tokens: make([]int32, len(runes)), index: map[rune]int32{}, window: window, stride: stride}
	for _, r := range runes {
		c.index[r] = 0
	}
	for i, r := range slices.Sorted(maps.Keys(c.index)) {
		c.index[r] = int32(i)
		c.vocabulary = append(c.vocabulary, string(r))
	}
	for i, r := range runes {
		c.tokens[i] = c.index[r]
	}
	return c, nil
}

func (c *Corpus) Len() int { return (len(c.tokens)-1-c.window)/c.stride + 1 }

func (c *Corpus) Spec() Spec {
	t := []int{c.window}
	return Spec{Shape: t, Target: t, Type: driver.Int64, Classes: len(c.vocabulary), Names: c.vocabulary}
}

func (c *Corpus) Read(i int, x Values, y []int64) error {
	at := c.tokens[i*c.stride:]
	for k := range c.window {
		x.I64[k], y[k] = int64(at[k]), int64(at[k+1])
	}
	return nil
}

// Encode gives the tokens of a text, to begin sampling with.
func (c *Corpus) Encode(text string) ([]int64, error) {
	var tokens []int64
	for _, r := range text {
		t, ok := c.index[r]
		if !ok {
			return nil, fmt.Errorf("data: text: %q is not in the vocabulary", r)
		}
		tokens = append(tokens, int64(t))
	}
	return tokens, nil
}

// Decode gives the text of tokens; what is no token becomes U+FFFD.
func (c *Corpus) Decode(tokens []int64) string {
	var b strings.Builder
	for _, t := range tokens {
		if t < 0 || t >= int64(len(c.vocabulary)) {
			b.WriteRune(utf8.RuneError)
			continue
		}
		b.WriteString(c.vocabulary[t])
	}
	return b.String()
}
