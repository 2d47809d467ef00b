package node

import "time"

// delay waits until the asked time has passed since its call. Troubles may change that time meanwhile. It reports false
// if stop or the runtime was closed before.
func (r *Runtime) delay(stop <-chan struct{}, asked func() time.Duration) bool {
	begun := time.Now()
	for {
		changed := r.troubles.changes()
		left := asked() - time.Since(begun)
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-stop:
			timer.Stop()
			return false
		case <-r.closed:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// changes is closed when troubles are not what they are now.
func (t *troubles) changes() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}
