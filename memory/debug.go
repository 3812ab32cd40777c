//go:build snugdebug

package memory

// fill makes every float in c a NaN: when it is handed out, so that what was never
// written shows, and when it is freed, so that what is read too late does.
func (p *Pool) fill(c *chunk) {
	f, ok := p.src.(Filler)
	if mem := c.seg.part(c.off, c.size); ok && mem != nil {
		f.Fill(mem, 0xFF)
	}
}
