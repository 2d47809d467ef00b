package taps

// Waiting returns how many requests wait because a program without taps is paused.
func Waiting(t *Taps) int {
	t.Control.mu.Lock()
	defer t.Control.mu.Unlock()
	return len(t.queued)
}

// EndsReconcile reports whether a line of a log is in JSON, and whether it begins or ends a reconcile.
func EndsReconcile(line string) (parsed, begins, ends bool) {
	l, ok := parseLogLine(line)
	return ok, l.begins(), ok && l.end(&runningReconcile{})
}
