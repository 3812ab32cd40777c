//go:build snugdebug

package memory

// Guard is a Source that may have memory for single blocks, where nothing else lies beside
// them: what goes beyond a block shows. Guarded is nil where it has none.
type Guard interface {
	Guarded(bytes int64) []byte
	Unguard(mem []byte)
}

func (p *Pool) guard(c *chunk) {
	if g, ok := p.src.(Guard); ok {
		c.mem = g.Guarded(c.requested)
	}
}

func (p *Pool) unguard(c *chunk) {
	if c.mem != nil {
		p.src.(Guard).Unguard(c.mem)
	}
}

// fill makes every float in c a NaN: when it is handed out, so that what was never
// written shows, and when it is freed, so that what is read too late does.
func (p *Pool) fill(c *chunk) {
	f, ok := p.src.(Filler)
	if mem := c.seg.part(c.off, c.size); ok && mem != nil {
		f.Fill(mem, 0xFF)
	}
}
