package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var numbers = []string{"none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}

// story is a text of so many sentences, for who has none at hand. A model that has
// learned it counts rightly and remembers who it speaks of.
func story(sentences int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	count := func(n int, what string) string {
		if n == 1 {
			return "one " + what
		}
		return numbers[n] + " " + what + "s"
	}
	var b strings.Builder
	for range sentences / 2 {
		person := [][2]string{{"king", "he"}, {"queen", "she"}, {"baker", "he"}, {"girl", "she"}, {"miller", "he"}, {"sister", "she"}}[r.IntN(6)]
		thing := pick("apple", "hen", "coin", "letter", "lamp", "boat")
		has := 1 + r.IntN(9)
		gives := 1 + r.IntN(has)
		fmt.Fprintf(&b, "The %s %s has %s. ", pick("old", "young", "tall", "quiet"), person[0], count(has, thing))
		fmt.Fprintf(&b, "%s gives %s to the %s and keeps %s.\n", strings.ToUpper(person[1][:1])+person[1][1:],
			count(gives, thing), pick("cat", "neighbour", "sailor", "friend"), numbers[has-gives])
	}
	return b.String()
}
