package gate

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

// ErrNobody is returned by [Effects.Break] while no container runs that a fault could kill.
var ErrNobody = errors.New("no container that it chooses is running")

// damage is what a fault keeps wrong in the nodes.
type damage struct {
	// repair sets it right; further calls return the same.
	repair func() error
	// timer repairs it after the time that the fault has for it; nil without one.
	timer *time.Timer
}

// breaks reports whether a fault happens to nodes and containers.
func breaks(spec v1alpha1.FaultSpec) bool {
	return spec.Pod != nil || spec.Node != nil || spec.Image != nil
}

// lasts returns how long what a fault breaks is broken, if there is a time for it.
func lasts(spec v1alpha1.FaultSpec) *metav1.Duration {
	switch {
	case spec.Pod != nil:
		return spec.Pod.For
	case spec.Node != nil:
		return spec.Node.For
	case spec.Image != nil:
		return spec.Image.For
	}
	return nil
}

// onlySlow reports whether images can be pulled all the same.
func onlySlow(i *v1alpha1.ImageFault) bool { return i.Delay.Duration > 0 && i.Error == "" }

// strike has a promised fault happen to nodes and containers. The event is of the call that it happens at, if there is one.
func (f *Faults) strike(x *fault, e trace.Event) error {
	of, repair, err := f.options.Effects.Break(x.spec)
	if err != nil {
		return err
	}
	if len(of) == 0 {
		of = []string{chosenBy(x.spec)}
	}
	if repair != nil {
		f.keep(x, &damage{repair: sync.OnceValue(repair)})
	}
	e.Message = x.deed(of) + f.whenStruck(x, e)
	e.Values = of // record puts more before it
	f.took(x, e)
	return nil
}

// whenStruck says at what a fault happened. What happens at once is a match only now that it did.
func (f *Faults) whenStruck(x *fault, e trace.Event) string {
	if e.Verb != "" {
		return ", just before " + e.Message
	}
	f.mu.Lock()
	x.matched++
	f.mu.Unlock()
	return " when the fault was made"
}

// keep remembers what is to be repaired when the fault is over, or after its time.
func (f *Faults) keep(x *fault, d *damage) {
	f.mu.Lock()
	over := x.ended()
	if !over {
		x.damage = d
		if lasts := lasts(x.spec); lasts != nil {
			d.timer = time.AfterFunc(lasts.Duration, func() { f.repair(x) })
		}
	}
	f.mu.Unlock()
	if over { // it was released in this very moment
		f.repaired(x, d.repair())
	}
}

// repair sets right what a fault keeps wrong, and returns when that is done, whoever does it. It is called without the lock.
func (f *Faults) repair(x *fault) {
	f.mu.Lock()
	d := x.damage
	f.mu.Unlock()
	if d == nil {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	err := d.repair()
	f.mu.Lock()
	mine := x.damage == d
	if mine {
		x.damage = nil
		f.settleLocked(x, f.options.Now())
	}
	f.mu.Unlock()
	if mine {
		f.repaired(x, err)
	}
}

// repaired tells that something was set right, or could not be.
func (f *Faults) repaired(x *fault, err error) {
	if err != nil {
		f.complain(x, fmt.Errorf("set right what it kept wrong: %w", err))
	}
	f.tell(x.name)
}

// broken reports whether a fault keeps something wrong now.
func (f *Faults) broken(x *fault) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return x.damage != nil
}

// strike has a fault happen to nodes and containers before a call is sent. While it lasts it does not happen again; while
// nobody is there to whom it could happen, the next match is its turn.
func (t *transport) strike(c *call, s *shot) {
	f := t.gate.faults
	if f.broken(s.fault) {
		return
	}
	e := t.gate.callEvent(c, &s.matcher)
	switch err := f.strike(s.fault, e); {
	case err == nil:
		s.fired = true
	case errors.Is(err, ErrNobody):
		f.complain(s.fault, fmt.Errorf("%w: it waits for another match", ErrNobody))
	default:
		s.fired = true
		f.failed(s.fault, e, err)
	}
}

// strikeNow has a fault happen to nodes and containers without a call. While nobody is there it waits.
func (f *Faults) strikeNow(x *fault) {
	f.mu.Lock()
	if x.ended() {
		f.mu.Unlock()
		return
	}
	x.promised++
	f.mu.Unlock()
	switch err := f.strike(x, trace.Event{}); {
	case err == nil:
	case errors.Is(err, ErrNobody):
		f.complain(x, fmt.Errorf("%w: it waits for one", ErrNobody))
		f.kills.Go(func() { f.strikeLater(x) })
	default:
		f.failed(x, trace.Event{}, err)
	}
}

// lookAgain is how often a fault that waits for somebody looks.
const lookAgain = 100 * time.Millisecond

// strikeLater waits for somebody to whom a fault can happen.
func (f *Faults) strikeLater(x *fault) {
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case <-x.over:
			return
		case <-look.C:
		}
		switch err := f.strike(x, trace.Event{}); {
		case err == nil:
			return
		case !errors.Is(err, ErrNobody):
			f.failed(x, trace.Event{}, err)
			return
		}
	}
}

// chosenBy says whom a fault chooses.
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

// chosenPods is such as default/web-*/page (app=web).
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

// deed says in words what a fault did, to whom.
func (x *fault) deed(to []string) string {
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
	case p.Action == v1alpha1.PodOOMKill:
		return "killed " + of + " for want of memory"
	}
	return "killed " + of
}
