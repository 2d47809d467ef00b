package node

// Attached returns the number of clients attached to a container.
func (r *Runtime) Attached(id string) int {
	c, err := r.container(id)
	if err != nil {
		return 0
	}
	c.attached.mu.Lock()
	defer c.attached.mu.Unlock()
	return len(c.attached.clients)
}
