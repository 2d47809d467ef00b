package fault

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// injection is a fault that is to happen at a call.
type injection struct {
	*fault
	n        int32 // number of the fault's match
	happened bool
}

// injections counts a match for each fault that matches a call, and returns those that happen at it, in the order they
// were armed.
func (t *transport) injections(armed *armed, c *call) []*injection {
	f := t.injector.faults
	var out []*injection
	for _, x := range armed.calls {
		if x.staleAt(c, t.injector.operator) {
			out = append(out, &injection{fault: x, happened: true}) // its match was the event
			continue
		}
		if !x.applies(t.injector.operator) || !x.matcher.call(c, f.callKind) {
			continue
		}
		if x.field != nil {
			changes, err := t.changes(c, x.field)
			if err != nil {
				f.complain(x, err)
			}
			if !changes {
				continue
			}
		}
		if n, happens := f.match(x); happens {
			out = append(out, &injection{fault: x, n: n})
		}
	}
	return out
}

// carryOut sends a call and injects the faults that happen at it. If one of them ends the call, the later ones have not
// happened.
func (t *transport) carryOut(c *call, injections []*injection) (*http.Response, error) {
	defer func() { // also when the goroutine ends by Goexit
		for _, s := range injections {
			if !s.happened {
				t.injector.faults.giveBack(s.fault)
			}
		}
	}()
	if resp, err := t.before(c, injections); resp != nil || err != nil {
		if c.req.Body != nil {
			_ = c.req.Body.Close() // a RoundTripper has to, and nothing can be done about its error
		}
		return resp, err
	}
	resp, err := t.next.RoundTrip(c.req)
	if t.injector.isDead.Load() {
		t.lose(c, resp, &injections[0].matcher)
		return nil, t.injector.ending(c.req)
	}
	return t.after(c, injections, resp, err)
}

// lose drops an answer that the operator does not get. A write that was carried out is recorded, because nobody else knows
// of it.
func (t *transport) lose(c *call, resp *http.Response, m *matcher) {
	defer drop(resp)
	if c == nil || !trace.IsWriteVerb(c.verb) || resp == nil || resp.StatusCode >= http.StatusMultipleChoices {
		return
	}
	e := t.injector.callEvent(c, m)
	describe(&e, c, resp)
	e.Kind, e.Actor, e.Source, e.Lost, e.Message = trace.KindCall, t.injector.operator, trace.Server, true, ""
	t.injector.faults.options.Journal.Append(e)
}

// before injects the faults that come before a call is sent. If it returns an answer or an error, the call must not be
// sent.
func (t *transport) before(c *call, injections []*injection) (*http.Response, error) {
	for _, s := range injections {
		if s.spec.Stale != nil {
			t.fallBehind(c, s)
		}
		if s.when() != v1alpha1.Before {
			continue
		}
		var resp *http.Response
		var err error
		switch {
		case s.spec.Conflict != nil:
			t.conflict(c, s)
		case s.spec.ControlPlane != nil:
			t.kill(c, s)
		case breaks(s.spec):
			t.breakMachines(c, s)
		case s.spec.Hold != nil:
			err = t.hold(c, s, t.injector.callEvent(c, &s.matcher))
		case s.spec.Crash != nil:
			t.crash(c, s, t.injector.callEvent(c, &s.matcher))
			err = errDead
		case s.spec.API != nil:
			resp, err = t.answer(c, s)
		}
		if errors.Is(err, errDead) {
			return nil, t.injector.ending(c.req)
		}
		if resp != nil || err != nil {
			return resp, err
		}
	}
	return nil, nil
}

// after injects the faults that come after the API server answered.
func (t *transport) after(c *call, injections []*injection, resp *http.Response, err error) (*http.Response, error) {
	for _, s := range injections {
		if s.when() != v1alpha1.After {
			continue
		}
		e := t.injector.callEvent(c, &s.matcher)
		describe(&e, c, resp)
		var stop error
		switch {
		case s.spec.Hold != nil:
			stop = t.hold(c, s, e)
		case s.spec.Crash != nil, s.spec.Stale != nil && s.fault.isBehind():
			t.lose(c, resp, &s.matcher) // before the reconcile ends
			resp = nil
			t.crash(c, s, e)
			stop = errDead
		case s.spec.API != nil:
			stop = t.late(c, s, e)
		}
		if stop == nil {
			continue
		}
		t.lose(c, resp, &s.matcher)
		if errors.Is(stop, errDead) {
			return nil, t.injector.ending(c.req)
		}
		return nil, stop
	}
	return resp, err
}

// crash ends the operator; only one of several concurrent calls does it.
func (t *transport) crash(_ *call, s *injection, e trace.Event) {
	if !t.injector.die() {
		return // another call was faster
	}
	s.happened = true
	var pause time.Duration
	if s.spec.Crash != nil {
		pause = s.spec.Crash.RestartAfter.Duration
		t.injector.faults.happened(s.fault, e)
	} else {
		s.fault.show(e)
	}
	t.injector.faults.options.Effects.Crash(t.injector.operator, pause)
}

// hold blocks a call until the fault is over or its time has passed.
func (t *transport) hold(c *call, s *injection, e trace.Event) error {
	s.happened = true
	t.injector.faults.happened(s.fault, e)
	until, stop := timer(s.spec.Hold.For)
	defer stop()
	return t.injector.faults.wait(c.req.Context(), t.injector, s.fault, until, nil)
}

// delay blocks a call for the fault's delay.
func (t *transport) delay(c *call, s *injection) error {
	d := s.spec.API.Delay
	if d.Duration <= 0 {
		return nil
	}
	until, stop := timer(&d)
	defer stop()
	return t.injector.faults.wait(c.req.Context(), t.injector, s.fault, until, nil)
}

// answer answers a call without sending it.
func (t *transport) answer(c *call, s *injection) (*http.Response, error) {
	s.happened = true
	t.injector.faults.happened(s.fault, t.injector.callEvent(c, &s.matcher))
	if err := t.delay(c, s); err != nil {
		return nil, err
	}
	if s.reply() == v1alpha1.ReplyTimeout {
		return nil, errTimeout
	}
	return fake(c, s.reply()), nil
}

// late delays or discards the API server's answer.
func (t *transport) late(c *call, s *injection, e trace.Event) error {
	s.happened = true
	t.injector.faults.happened(s.fault, e)
	if err := t.delay(c, s); err != nil {
		return err
	}
	if s.reply() == v1alpha1.ReplyLost {
		return errLost
	}
	return nil
}

// conflict changes the object as a second writer before the call is sent.
func (t *transport) conflict(c *call, s *injection) {
	f := t.injector.faults
	s.happened = true
	e := t.injector.callEvent(c, &s.matcher)
	if err := f.options.Effects.PatchAsOther(c.req.Context(), c.GVR(), c.Namespace, c.Name, s.fault.otherPatch(s.n)); err != nil {
		f.failed(s.fault, e, fmt.Errorf("the second writer could not change %s: %w", objectText(e.Object), err))
		return
	}
	f.happened(s.fault, e)
}

// kill kills a program of the control plane before the call is sent.
func (t *transport) kill(c *call, s *injection) {
	f := t.injector.faults
	s.happened = true
	e := t.injector.callEvent(c, &s.matcher)
	if err := f.options.Effects.Kill(s.spec.ControlPlane.Program); err != nil {
		f.failed(s.fault, e, fmt.Errorf("kill %s: %w", s.spec.ControlPlane.Program, err))
		return
	}
	f.happened(s.fault, e)
}

// atOnce injects a fault that needs no match.
func (f *Faults) atOnce(x *fault) {
	switch {
	case x.spec.ControlPlane != nil:
		// In a goroutine, so that the client that armed the fault gets its answer first: it may have come through this
		// program.
		if _, happens := f.match(x); happens {
			f.kills.Go(func() { f.killNow(x) })
		}
	case x.spec.Crash != nil:
		f.crashNow(x, f.injectorsOf(x))
	case x.spec.Watch != nil:
		f.cutNow(x)
	case breaks(x.spec):
		x.breakNow()
	}
}

func (f *Faults) killNow(x *fault) {
	program := x.spec.ControlPlane.Program
	if err := f.options.Effects.Kill(program); err != nil {
		f.failed(x, trace.Event{}, fmt.Errorf("kill %s: %w", program, err))
		return
	}
	f.happened(x, trace.Event{Message: "killed " + program + " when the fault was made"})
}

// injectorsOf returns the injectors of the operators that a fault concerns.
func (f *Faults) injectorsOf(x *fault) []*Injector {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*Injector
	for in := range f.injectors {
		if x.applies(in.operator) {
			out = append(out, in)
		}
	}
	return out
}

// crashNow ends operators without a call. Without an operator the fault waits for one.
func (f *Faults) crashNow(x *fault, injectors []*Injector) {
	if len(injectors) == 0 {
		f.complain(x, errors.New("no operator is there: it waits for one"))
		return
	}
	if _, happens := f.match(x); !happens {
		return
	}
	crashed := false
	for _, in := range injectors {
		if !in.die() {
			continue
		}
		e := trace.Event{Operator: in.operator, Message: in.operator + " when the fault was made"}
		if crashed {
			f.record(x, e) // all crashes count as one time
		} else {
			f.happened(x, e)
		}
		crashed = true
		f.options.Effects.Crash(in.operator, x.spec.Crash.RestartAfter.Duration)
	}
	if !crashed {
		f.giveBack(x)
	}
}

// crashWaiting ends an operator that started after an immediate crash was armed, and reports whether it is dead.
func (in *Injector) crashWaiting(armed *armed) bool {
	for _, x := range armed.waiting {
		if x.applies(in.operator) {
			in.faults.crashNow(x, []*Injector{in})
		}
	}
	return in.isDead.Load()
}

// cutNow cuts all watches of all operators that a fault concerns, or ends them with 410 Gone.
func (f *Faults) cutNow(x *fault) {
	why := io.EOF
	if x.spec.Watch.Action == v1alpha1.WatchGone {
		why = errGone
	}
	f.match(x)
	n, operator := 0, ""
	for _, in := range f.injectorsOf(x) {
		n += in.cut(schema.GroupResource{}, nil, why)
		operator = in.operator
	}
	if x.spec.Operator != "" {
		operator = x.spec.Operator
	}
	f.happened(x, trace.Event{Operator: operator, Message: fmt.Sprintf("%d watches when the fault was made", n)})
}

// timer returns a channel that receives after a duration (nil without one), and a function that stops the timer.
func timer(d *metav1.Duration) (until <-chan time.Time, stop func()) {
	if d == nil {
		return nil, func() {}
	}
	t := time.NewTimer(d.Duration)
	return t.C, func() { t.Stop() }
}
