package gate

// ReleaseAll lets go what all faults hold, and disarms them; their statuses stay.
func (f *Faults) ReleaseAll() {
	f.mu.Lock()
	names := make([]string, 0, len(f.faults))
	for name := range f.faults {
		names = append(names, name)
	}
	f.mu.Unlock()
	for _, name := range names {
		f.Release(name)
	}
}
