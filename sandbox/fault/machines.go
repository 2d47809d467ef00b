package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// ErrNobody is returned by [Effects.Break] while no container runs that the fault could kill.
var ErrNobody = errors.New("no container that it chooses is running")

// effect is a lasting effect of a fault: on nodes or containers, or an older view.
type effect struct {
	// repair ends the effect; further calls return the first result.
	repair func() error
	// timer calls repair after the fault's duration and the grace; nil if it has none.
	timer *time.Timer
	grace time.Duration
}

// breaks reports whether a fault affects nodes and containers.
func breaks(spec v1alpha1.FaultSpec) bool {
	return spec.Pod != nil || spec.Node != nil || spec.Image != nil
}

// lasts returns how long the effect lasts; nil if it lasts until the fault is over.
func lasts(spec v1alpha1.FaultSpec) *metav1.Duration {
	switch {
	case spec.Pod != nil:
		return spec.Pod.For
	case spec.Node != nil:
		return spec.Node.For
	case spec.Image != nil:
		return spec.Image.For
	case spec.Stale != nil:
		return spec.Stale.For
	}
	return nil
}

// onlySlow reports whether pulls are only delayed and do not fail.
func onlySlow(i *v1alpha1.ImageFault) bool { return i.Delay.Duration > 0 && i.Error == "" }

// breakMachines injects a fault, whose match is reserved, into nodes and containers. The event describes the call that it
// happens at, if there is one.
func (x *fault) breakMachines(e trace.Event) error {
	of, repair, err := x.set.options.Effects.Break(x.spec)
	if err != nil {
		return err
	}
	if len(of) == 0 {
		of = []string{chosenBy(x.spec)}
	}
	if repair != nil {
		x.keep(&effect{repair: sync.OnceValue(repair)})
	}
	e.Message = x.effectText(of) + x.whenText(e)
	e.Values = trace.FaultPayload{Of: of}.Values() // record adds the kind and the detail
	x.set.happened(x, e)
	return nil
}

// whenText says at which call a fault happened. A fault without a call counts its match here.
func (x *fault) whenText(e trace.Event) string {
	if e.Verb != "" {
		return ", just before " + e.Message
	}
	x.set.mu.Lock()
	x.matched++
	x.set.mu.Unlock()
	return " when the fault was made"
}

// keep remembers the repair for when the fault is over or its duration ends.
func (x *fault) keep(d *effect) {
	x.set.mu.Lock()
	over := x.ended()
	if !over {
		x.effect = d
		if lasts := lasts(x.spec); lasts != nil {
			d.timer = time.AfterFunc(lasts.Duration+d.grace, func() { x.repair() })
		}
	}
	x.set.mu.Unlock()
	if over { // it was released in this very moment
		x.repaired(d.repair())
	}
}

// repair repairs what a fault keeps broken, and returns when that is done, even if another goroutine does it. The lock
// must not be held.
func (x *fault) repair() {
	x.set.mu.Lock()
	d := x.effect
	x.set.mu.Unlock()
	if d == nil {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	err := d.repair()
	x.set.mu.Lock()
	mine := x.effect == d
	if mine {
		x.effect = nil
		x.set.settleLocked(x, x.set.options.Now())
	}
	x.set.mu.Unlock()
	if mine {
		x.repaired(err)
	}
}

// repaired reports the result of a repair.
func (x *fault) repaired(err error) {
	if err != nil {
		x.set.complain(x, fmt.Errorf("set right what it kept wrong: %w", err))
	}
	x.set.tell(x.name)
}

// broken reports whether a fault keeps something broken now.
func (x *fault) broken() bool {
	x.set.mu.Lock()
	defer x.set.mu.Unlock()
	return x.effect != nil
}

// breakMachines injects a fault into nodes and containers before a call is sent. While a fault lasts it does not happen
// again; without a container to kill, the fault waits for the next match.
func (t *transport) breakMachines(c *call, s *injection) {
	f := t.injector.faults
	if s.fault.broken() {
		return
	}
	e := t.injector.callEvent(c, &s.matcher)
	switch err := s.fault.breakMachines(e); {
	case err == nil:
		s.happened = true
	case errors.Is(err, ErrNobody):
		f.complain(s.fault, fmt.Errorf("%w: it waits for another match", ErrNobody))
	default:
		s.happened = true
		f.failed(s.fault, e, err)
	}
}

// breakNow injects a fault into nodes and containers without a call. Without a container to kill, it waits for one.
func (x *fault) breakNow() {
	x.set.mu.Lock()
	if x.ended() {
		x.set.mu.Unlock()
		return
	}
	x.reserved++
	x.set.mu.Unlock()
	switch err := x.breakMachines(trace.Event{}); {
	case err == nil:
	case errors.Is(err, ErrNobody):
		x.set.complain(x, fmt.Errorf("%w: it waits for one", ErrNobody))
		x.set.kills.Go(func() { x.breakLater() })
	default:
		x.set.failed(x, trace.Event{}, err)
	}
}

// lookAgain is how often a fault that waits for a target tries again.
const lookAgain = 100 * time.Millisecond

// breakLater retries a fault until it finds a target or is over.
func (x *fault) breakLater() {
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case <-x.over:
			return
		case <-look.C:
		}
		switch err := x.breakMachines(trace.Event{}); {
		case err == nil:
			return
		case !errors.Is(err, ErrNobody):
			x.set.failed(x, trace.Event{}, err)
			return
		}
	}
}

// chosenBy describes the targets that a fault selects.
func chosenBy(spec v1alpha1.FaultSpec) string {
	switch {
	case spec.Pod != nil:
		return chosenPods(spec.Pod)
	case spec.Node != nil:
		return orElse(spec.Node.Name, "*")
	}
	if spec.Image.Namespace != "" {
		return spec.Image.Name + " (in " + spec.Image.Namespace + ")"
	}
	return spec.Image.Name
}

// chosenPods returns for example default/web-*/page (app=web).
func chosenPods(p *v1alpha1.PodFault) string {
	text := orElse(p.Name, "*")
	if p.Namespace != "" {
		text = p.Namespace + "/" + text
	}
	if p.Container != "" {
		text += "/" + p.Container
	}
	if len(p.Selector) == 0 {
		return text
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(p.Selector)) {
		labels = append(labels, key+"="+p.Selector[key])
	}
	return text + " (" + strings.Join(labels, ",") + ")"
}

// effectText says what a fault did, and to which targets.
func (x *fault) effectText(to []string) string {
	of := strings.Join(to, ", ")
	switch p, n, i := x.spec.Pod, x.spec.Node, x.spec.Image; {
	case n != nil && n.Action == v1alpha1.NodeLost:
		return "took the power of " + of + " away"
	case n != nil:
		return "restarted " + of
	case i != nil && onlySlow(i):
		return "pulls of " + of + " take " + i.Delay.Duration.String() + " longer"
	case i != nil:
		return "pulls of " + of + " fail"
	case p.Action == v1alpha1.PodUnready:
		return "readiness probes of pods " + of + " fail"
	case p.Action == v1alpha1.PodCrash:
		return "containers of pods " + of + " end when they start"
	case p.Action == v1alpha1.PodStartLate:
		return "containers of pods " + of + " start late"
	case p.Action == v1alpha1.PodSlow:
		return "containers of pods " + of + " are slow"
	case p.Action == v1alpha1.PodOOMKill:
		return "killed " + of + " for want of memory"
	}
	return "killed " + of
}
