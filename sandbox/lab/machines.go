package lab

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

// Machines gives access to the nodes of a cluster. [sandbox.Nodes] implements it.
type Machines interface {
	// Names returns the names of all nodes, including lost ones.
	Names() []string
	// SetTroubles replaces the troubles of all nodes, and makes the nodes forget the images that match the given
	// patterns. When it returns, the troubles apply to everything that begins.
	SetTroubles(list []node.Trouble, forget ...string) error
	// KillContainers kills the matching running containers, and returns them as namespace/pod/container.
	KillContainers(m node.Match, reason string) ([]string, error)
	// Lose switches a node off, and returns when it is off.
	Lose(name string) error
	// Return switches a lost node on again.
	Return(name string) error
	// Restart switches a node off and on again, and returns when it was off.
	Restart(name string) error
	// Await returns when all nodes that are not lost accept pods.
	Await(ctx context.Context) error
}

var errNoMachines = errors.New("the lab did not start this cluster's nodes")

// validateMachines returns why a fault cannot happen to nodes here.
func (b *backend) validateMachines(spec v1alpha1.FaultSpec) field.ErrorList {
	kind := ""
	switch {
	case spec.Pod != nil:
		kind = "pod"
	case spec.Node != nil:
		kind = "node"
	case spec.Image != nil:
		kind = "image"
	default:
		return nil
	}
	p := field.NewPath("spec", kind)
	if b.options.Machines == nil {
		return field.ErrorList{field.Forbidden(p, errNoMachines.Error())}
	}
	names := b.options.Machines.Names()
	if len(names) == 0 {
		return field.ErrorList{field.Forbidden(p, "this sandbox has no nodes: start it with --nodes 1, or more")}
	}
	if n := spec.Node; n != nil && len(fitting(names, n.Name)) == 0 {
		return field.ErrorList{field.NotSupported(p.Child("name"), n.Name, names)}
	}
	if i := spec.Image; i != nil && i.Name != "" {
		if err := images.CheckPattern(i.Name); err != nil {
			return field.ErrorList{field.Invalid(p.Child("name"), i.Name, err.Error())}
		}
	}
	return nil
}

// fitting returns the names that match a pattern; an empty one matches all. In a valid pattern only * is special, and
// no name has a slash.
func fitting(names []string, pattern string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		ok, err := path.Match(pattern, name)
		return pattern != "" && (err != nil || !ok)
	})
}

// nodeEffects are the lasting effects of an epoch's faults on the nodes.
type nodeEffects struct {
	machines Machines

	mu       sync.Mutex // held while nodes are told, so that the newest state arrives last
	troubles []*node.Trouble
	lost     map[string]int // number of faults by which each node is lost
}

// Break injects a fault into nodes and containers; see [fault.Effects].
func (d *nodeEffects) Break(spec v1alpha1.FaultSpec) (of []string, repair func() error, err error) {
	if d.machines == nil {
		return nil, nil, errNoMachines
	}
	switch p := spec.Pod; {
	case spec.Node != nil && spec.Node.Action == v1alpha1.NodeRestart:
		of, err = d.restart(fitting(d.machines.Names(), spec.Node.Name))
		return of, nil, err
	case spec.Node != nil:
		return d.lose(fitting(d.machines.Names(), spec.Node.Name))
	case spec.Image != nil:
		repair, err = d.trouble(troubleOfImage(spec.Image), spec.Image.Name)
	case p.Action == v1alpha1.PodKill:
		of, err = d.kill(p, node.ReasonError)
	case p.Action == v1alpha1.PodOOMKill:
		of, err = d.kill(p, node.ReasonOOMKilled)
	default:
		repair, err = d.trouble(troubleOfPod(p))
	}
	return of, repair, err
}

func (d *nodeEffects) kill(p *v1alpha1.PodFault, reason string) ([]string, error) {
	killed, err := d.machines.KillContainers(matchOf(p), reason)
	if err == nil && len(killed) == 0 {
		return nil, fault.ErrNobody
	}
	return killed, err
}

func (d *nodeEffects) restart(names []string) ([]string, error) {
	return names, each(names, d.machines.Restart)
}

// lose switches nodes off, until each fault that did so is repaired.
func (d *nodeEffects) lose(names []string) (of []string, repair func() error, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		d.lost[name]++
	}
	if err := each(names, d.machines.Lose); err != nil {
		return nil, nil, errors.Join(err, d.giveLocked(names))
	}
	return names, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.giveLocked(names)
	}, nil
}

// giveLocked switches nodes on again, except for those that another fault keeps lost.
func (d *nodeEffects) giveLocked(names []string) error {
	var back []string
	for _, name := range names {
		d.lost[name]--
		if d.lost[name] == 0 {
			back = append(back, name)
		}
	}
	return each(back, d.machines.Return)
}

// each calls a function for all nodes concurrently.
func each(names []string, do func(string) error) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			if err := do(name); err != nil {
				errs[i] = fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// trouble adds a trouble to the nodes until it is repaired.
func (d *nodeEffects) trouble(t node.Trouble, forget ...string) (repair func() error, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	mine := &t
	d.troubles = append(d.troubles, mine)
	drop := func() {
		d.troubles = slices.DeleteFunc(d.troubles, func(other *node.Trouble) bool { return other == mine })
	}
	if err := d.tellLocked(forget...); err != nil {
		drop()
		return nil, errors.Join(err, d.tellLocked()) // some nodes may have it already
	}
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		drop()
		return d.tellLocked()
	}, nil
}

func (d *nodeEffects) tellLocked(forget ...string) error {
	list := make([]node.Trouble, 0, len(d.troubles))
	for _, t := range d.troubles {
		list = append(list, *t)
	}
	return d.machines.SetTroubles(list, forget...)
}

func matchOf(p *v1alpha1.PodFault) node.Match {
	return node.Match{Namespace: p.Namespace, Pod: p.Name, Labels: p.Selector, Container: p.Container}
}

func troubleOfPod(p *v1alpha1.PodFault) node.Trouble {
	t := node.Trouble{Match: matchOf(p)}
	switch p.Action {
	case v1alpha1.PodUnready:
		t.Unready = true
	case v1alpha1.PodSlow:
		t.Slow = true
	case v1alpha1.PodStartLate:
		t.StartDelay = p.After.Duration
	case v1alpha1.PodCrash:
		t.Crash, t.CrashCode = true, 1
		if p.ExitCode != nil {
			t.CrashCode = int(*p.ExitCode)
		}
		if p.After != nil {
			t.CrashAfter = p.After.Duration
		}
	}
	return t
}

// notFound is a registry's error for an image that it does not have.
const notFound = "not found"

func troubleOfImage(i *v1alpha1.ImageFault) node.Trouble {
	t := node.Trouble{
		Match:     node.Match{Namespace: i.Namespace, Image: i.Name},
		PullDelay: i.Delay.Duration, PullError: strings.TrimSpace(i.Error),
	}
	if t.PullError == "" && t.PullDelay == 0 {
		t.PullError = notFound
	}
	return t
}
