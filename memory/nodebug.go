//go:build !snugdebug

package memory

// fill does something in builds with the tag snugdebug only.
func (p *Pool) fill(*chunk) {}
