package node

import (
	"maps"
	"slices"
	"sync"
)

// register knows which pods and containers a [Runtime] has.
type register struct {
	mu         sync.Mutex
	pods       map[string]*pod
	containers map[string]*container
}

// pod returns a pod by its ID.
func (r *register) pod(id string) (*pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[id]; p != nil {
		return p, nil
	}
	return nil, notFound("sandbox", id)
}

// allPods returns all pods, the newest first.
func (r *register) allPods() []*pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods []*pod
	for _, p := range r.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *pod) int { return b.created.Compare(a.created) })
	return pods
}

// container returns a container by its ID.
func (r *register) container(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, notFound("container", id)
}

// containersOf returns the IDs of the containers of a pod.
func (r *register) containersOf(pod string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for id, c := range r.containers {
		if c.pod.id == pod {
			ids = append(ids, id)
		}
	}
	return ids
}

// allContainers returns all containers in no particular order.
func (r *register) allContainers() []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.containers))
}
