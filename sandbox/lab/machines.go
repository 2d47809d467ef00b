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
	"github.com/operator-lab/operator-lab/sandbox/gate"
	"github.com/operator-lab/operator-lab/sandbox/node"
	"github.com/operator-lab/operator-lab/sandbox/program"
)

// Machines are the nodes of a cluster, for those who can reach them from below. A [sandbox.Sandbox] has them.
type Machines interface {
	// NodeNames are the names of all nodes, also of those that are lost.
	NodeNames() []string
	// SetTroubles says what goes wrong on all nodes, instead of what was said before, and has them forget images by
	// patterns. When it returns, this holds for all that begins.
	SetTroubles(list []node.Trouble, forget ...string) error
	// KillContainers kills the running containers that are chosen, and returns them as namespace/pod/container.
	KillContainers(m node.Match, reason string) ([]string, error)
	// LoseNode takes the power of a node away, and returns when it is off; ReturnNode gives it back.
	LoseNode(name string) error
	ReturnNode(name string) error
	// RestartNode takes the power of a node away and gives it back, and returns when it was off.
	RestartNode(name string) error
	// AwaitNodes returns when all nodes that are not lost can be given pods.
	AwaitNodes(ctx context.Context) error
}

var errNoMachines = errors.New("the lab did not start this cluster's nodes")

// validateMachines refuses what can happen to no node here.
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
	names := b.options.Machines.NodeNames()
	if len(names) == 0 {
		return field.ErrorList{field.Forbidden(p, "this sandbox has no nodes: start it with --nodes 1, or more")}
	}
	if n := spec.Node; n != nil && len(fitting(names, n.Name)) == 0 {
		return field.ErrorList{field.NotSupported(p.Child("name"), n.Name, names)}
	}
	if i := spec.Image; i != nil && i.Name != "" {
		if err := program.CheckPattern(i.Name); err != nil {
			return field.ErrorList{field.Invalid(p.Child("name"), i.Name, err.Error())}
		}
	}
	return nil
}

// fitting returns the names that a pattern fits; an empty one fits all. In a valid one only * is special, and no name has
// a slash.
func fitting(names []string, pattern string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		ok, err := path.Match(pattern, name)
		return pattern != "" && (err != nil || !ok)
	})
}

// damages are what the faults of a round keep wrong in the nodes.
type damages struct {
	machines Machines

	mu       sync.Mutex // held while nodes are told, so that they hear of the newest last
	troubles []*node.Trouble
	lost     map[string]int // how many faults each node is lost by
}

// Break does to nodes and containers what a fault says.
func (d *damages) Break(spec v1alpha1.FaultSpec) (of []string, repair func() error, err error) {
	if d.machines == nil {
		return nil, nil, errNoMachines
	}
	switch p := spec.Pod; {
	case spec.Node != nil && spec.Node.Action == v1alpha1.NodeRestart:
		of, err = d.restart(fitting(d.machines.NodeNames(), spec.Node.Name))
		return of, nil, err
	case spec.Node != nil:
		return d.lose(fitting(d.machines.NodeNames(), spec.Node.Name))
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

func (d *damages) kill(p *v1alpha1.PodFault, reason string) ([]string, error) {
	killed, err := d.machines.KillContainers(matchOf(p), reason)
	if err == nil && len(killed) == 0 {
		return nil, gate.ErrNobody
	}
	return killed, err
}

func (d *damages) restart(names []string) ([]string, error) {
	return names, each(names, d.machines.RestartNode)
}

// lose takes the power of nodes away, until each fault that did has given it back.
func (d *damages) lose(names []string) (of []string, repair func() error, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		d.lost[name]++
	}
	if err := each(names, d.machines.LoseNode); err != nil {
		return nil, nil, errors.Join(err, d.giveLocked(names))
	}
	return names, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.giveLocked(names)
	}, nil
}

// giveLocked gives nodes their power back, but for those that are lost by another fault too.
func (d *damages) giveLocked(names []string) error {
	var back []string
	for _, name := range names {
		d.lost[name]--
		if d.lost[name] == 0 {
			back = append(back, name)
		}
	}
	return each(back, d.machines.ReturnNode)
}

// each does something to all nodes side by side.
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

// trouble has something go wrong until it is repaired.
func (d *damages) trouble(t node.Trouble, forget ...string) (repair func() error, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	mine := &t
	d.troubles = append(d.troubles, mine)
	drop := func() {
		d.troubles = slices.DeleteFunc(d.troubles, func(other *node.Trouble) bool { return other == mine })
	}
	if err := d.tellLocked(forget...); err != nil {
		drop()
		return nil, errors.Join(err, d.tellLocked()) // some nodes may have heard of it
	}
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		drop()
		return d.tellLocked()
	}, nil
}

func (d *damages) tellLocked(forget ...string) error {
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

// notFound is what a registry says of an image that it does not have.
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
