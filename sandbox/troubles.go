package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/node"
)

// orderTime is how long a node may take to do what it is told; it needs a millisecond.
const orderTime = 10 * time.Second

func (l layout) troubles() string { return filepath.Join(l.dir, "troubles.json") }

// orders are the way by which a node is told what goes wrong.
func (s *Sandbox) orders(index int) node.Orders {
	return node.OrdersOf(s.plan.Dir, index, s.layout.troubles())
}

// NodeNames are the names of the simulated nodes, also of those that are lost.
func (s *Sandbox) NodeNames() []string {
	var names []string
	for index := range s.options.Nodes {
		names = append(names, NodeName(index+1))
	}
	return names
}

// SetTroubles says what goes wrong with the containers of all nodes, instead of what was said before; the sandbox starts
// without troubles. All nodes forget the images that match one of the patterns of forget, so that they are pulled again.
// When it returns, this holds for everything that begins, also on a node that is lost and comes back.
func (s *Sandbox) SetTroubles(list []node.Trouble, forget ...string) error {
	s.telling.Lock() // so that no node hears of an older list after a newer one
	defer s.telling.Unlock()
	if err := s.orders(0).Write(list); err != nil {
		return err
	}
	return s.tellNodes(func(ctx context.Context, o node.Orders) error { return o.SetTroubles(ctx, list, forget) })
}

// KillContainers kills the running containers that a match chooses, on all nodes, as the kernel does: with exit code 137
// and the reason [node.ReasonError] or [node.ReasonOOMKilled]. It returns them as namespace/pod/container.
func (s *Sandbox) KillContainers(m node.Match, reason string) ([]string, error) {
	var mu sync.Mutex
	var all []string
	err := s.tellNodes(func(ctx context.Context, o node.Orders) error {
		killed, err := o.Kill(ctx, m, reason)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, killed...)
		return err
	})
	slices.Sort(all)
	return all, err
}

// tellNodes does something with the orders of all nodes side by side.
func (s *Sandbox) tellNodes(tell func(context.Context, node.Orders) error) error {
	ctx, cancel := context.WithTimeout(s.watching, orderTime)
	defer cancel()
	errs := make([]error, s.options.Nodes)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			if err := tell(ctx, s.orders(i+1)); err != nil {
				errs[i] = fmt.Errorf("%s: %w", NodeName(i+1), err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// LoseNode takes the power of a node away: its process and all containers on it end at once, nobody is told, and it is not
// started again before [Sandbox.ReturnNode]. When it returns the node is off.
func (s *Sandbox) LoseNode(name string) error {
	p, err := s.machine(name)
	if err == nil {
		p.lose()
	}
	return err
}

// ReturnNode gives a lost node its power back: it is started, and what should run on it starts anew.
func (s *Sandbox) ReturnNode(name string) error {
	p, err := s.machine(name)
	if err == nil {
		p.regain()
	}
	return err
}

// RestartNode takes the power of a node away, and gives it back at once. When it returns the node was off. A lost node stays
// lost.
func (s *Sandbox) RestartNode(name string) error {
	p, err := s.machine(name)
	if err == nil {
		p.kill()
	}
	return err
}

// AwaitNodes returns when all nodes that are not lost can be given pods, or with ctx's error.
func (s *Sandbox) AwaitNodes(ctx context.Context) error {
	for _, p := range s.programs {
		if nodeIndex(p.name) == 0 {
			continue
		}
		if err := p.awaitServing(ctx); err != nil {
			return fmt.Errorf("wait for %s: %w", p.name, err)
		}
	}
	return nil
}

func (s *Sandbox) machine(name string) (*program, error) {
	for _, p := range s.programs {
		if p.name == name && nodeIndex(name) != 0 {
			return p, nil
		}
	}
	hint := "start it with nodes: it has none"
	if names := s.NodeNames(); len(names) > 0 {
		hint = "its nodes are " + strings.Join(names, ", ")
	}
	return nil, &Problem{fmt.Errorf("the sandbox has no node %q", name), hint}
}
