package fault

// ReleaseAll releases every fault, as [Faults.Release] does; their statuses stay.
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
