package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/network"
)

// orderTimeout limits how long a node may take to carry out an order; it needs a millisecond.
const orderTimeout = 10 * time.Second

// Fleet sends orders to all nodes of a sandbox.
type Fleet struct {
	// Count is the number of nodes.
	Count int
	// Sockets is the directory with the nodes' sockets, and File has the troubles of now; see [OrdersOf].
	Sockets, File string

	mu sync.Mutex // one change of troubles at a time
}

// SetTroubles replaces the troubles of all nodes; a sandbox starts without any. All nodes forget the images that match a
// pattern of forget, so that they are pulled again. When it returns, this applies to everything that begins, also on a
// node that is lost and comes back.
func (f *Fleet) SetTroubles(list []Trouble, forget ...string) error {
	f.mu.Lock() // so that no node gets an older list after a newer one
	defer f.mu.Unlock()
	if err := (Orders{File: f.File}).Write(list); err != nil {
		return err
	}
	return f.each(func(ctx context.Context, o Orders) error { return o.SetTroubles(ctx, list, forget) })
}

// KillContainers kills the running containers that match, on all nodes, as the kernel does: with exit code 137 and the
// reason [ReasonError] or [ReasonOOMKilled]. It returns them as namespace/pod/container.
func (f *Fleet) KillContainers(m Match, reason string) ([]string, error) {
	var mu sync.Mutex
	var all []string
	err := f.each(func(ctx context.Context, o Orders) error {
		killed, err := o.Kill(ctx, m, reason)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, killed...)
		return err
	})
	slices.Sort(all)
	return all, err
}

// each calls a function for all nodes concurrently.
func (f *Fleet) each(do func(context.Context, Orders) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	errs := make([]error, f.Count)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			if err := do(ctx, OrdersOf(f.Sockets, i+1, f.File)); err != nil {
				errs[i] = fmt.Errorf("%s: %w", network.NodeName(i+1), err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
