//go:build unix || windows

package host

// Move gives to the memory of from.
func (s Source) Move(to, from []byte) error {
	if moved(to, from) {
		return nil
	}
	if err := s.Commit(to); err != nil {
		return err
	}
	s.Decommit(from)
	return nil
}
