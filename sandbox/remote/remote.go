// Package remote is the lab's end of the link with an operator that runs in a process of its own, which
// [github.com/operator-lab/operator-lab/sandbox/link] is the other end of: it receives the process's journal into the
// lab's, and sends the lab's orders.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Taps observe and control one operator through the link, over many runs of its process. An order returns when the process
// has carried it out and the journal has the events that it caused at once, when the connection ends, or after 10 s with a
// note in the journal: a process that is stopped carries it out when it goes on. What is ordered while no process is
// connected, the next one begins with; but steps only pause. All methods may be called from any goroutine.
type Taps struct {
	journal  *trace.Journal
	operator string
	patience time.Duration // for the answer to an order

	sending sync.Mutex // held while something is sent, so that orders arrive as they were given

	mu      sync.Mutex
	mode    link.Mode            // what is ordered
	shown   map[string]link.Mode // what the journal says of each of the operator's managers, by name
	run     *run                 // the newest run; nil before the first
	changed chan struct{}        // closed and replaced when a run begins or ends, or its state changes
}

// New returns taps of an operator that append to a journal.
func New(journal *trace.Journal, operator string) *Taps {
	return &Taps{
		journal: journal, operator: operator, patience: answerPatience,
		shown: map[string]link.Mode{operator: {}}, changed: make(chan struct{}),
	}
}

// errBusy is returned for a second process at the same time.
var errBusy = errors.New("another process of the operator is connected")

// Serve is one run of the process: it sends the settings and receives events until the connection ends, which it closes.
// The settings' operator and mode are those of the taps. An error says that the process broke the protocol; the end of
// the connection, also in the middle of a line, is none. Reconciles that run then are recorded as aborted.
func (t *Taps) Serve(conn net.Conn, s link.Settings) error {
	r, err := t.begin(conn, s)
	if err == nil {
		err = r.receive()
		_ = conn.Close() // nothing more is wanted from it
		t.end(r)
	} else {
		_ = conn.Close() // the first error says more
	}
	if err != nil {
		return fmt.Errorf("the link with operator %s: %w", t.operator, err)
	}
	return nil
}

// begin makes a connection the current run and sends it the settings.
func (t *Taps) begin(conn net.Conn, s link.Settings) (*run, error) {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	if t.connected() {
		t.mu.Unlock()
		return nil, errBusy
	}
	r := newRun(t, conn)
	t.run = r
	s.Operator, s.Mode = t.operator, t.mode
	t.notify()
	t.mu.Unlock()
	if err := json.NewEncoder(conn).Encode(s); err != nil && !ended(err) {
		t.end(r)
		return nil, err
	}
	return r, nil
}

// end records the end of a run as that of an operator in this process is recorded.
func (t *Taps) end(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.abort()
	r.over = true
	r.state = link.State{}
	close(r.done)
	r.wake()
	t.settle()
	t.notify()
}

// connected reports whether a process is connected. The caller holds the lock.
func (t *Taps) connected() bool { return t.run != nil && !t.run.over }

// notify wakes those who wait for a change of the state. The caller holds the lock.
func (t *Taps) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// settle records what was ordered and no process has recorded. The caller holds the lock.
func (t *Taps) settle() {
	for _, name := range sortedKeys(t.shown) {
		shown := t.shown[name]
		record := func(is *bool, want bool, on, off string) {
			if *is == want {
				return
			}
			*is = want
			verb := off
			if want {
				verb = on
			}
			t.journal.Append(trace.Event{Kind: trace.KindControl, Operator: name, Actor: "you", Verb: verb})
		}
		record(&shown.HoldWrites, t.mode.HoldWrites, trace.VerbHoldWrites, trace.VerbSendWrites)
		record(&shown.Paused, t.mode.Paused, trace.VerbPause, trace.VerbResume)
		t.shown[name] = shown
	}
}

// answerPatience is how long a process may take to acknowledge an order.
const answerPatience = 10 * time.Second

// order has an order carried out and returns its acknowledgement; the zero value if there is none.
func (t *Taps) order(o link.Order) link.Message {
	acknowledged, done := t.send(o)
	late := time.NewTimer(t.patience)
	defer late.Stop()
	select {
	case m := <-acknowledged:
		return m
	case <-done:
	case <-late.C:
		t.journal.Append(trace.Event{
			Kind: trace.KindNote, Operator: t.operator, Actor: t.operator,
			Message: fmt.Sprintf("the program has not answered the order to %s for %v; it may be stopped, as by a debugger", o.Do, t.patience),
		})
	}
	return link.Message{}
}

// send remembers and sends an order. It returns a channel for its acknowledgement, and one that is closed when there will
// be none.
func (t *Taps) send(o link.Order) (acknowledged <-chan link.Message, done <-chan struct{}) {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	t.mode = t.mode.After(o.Do)
	if !t.connected() {
		defer t.mu.Unlock()
		t.settle()
		none := make(chan struct{})
		close(none)
		return nil, none
	}
	r := t.run
	r.orders++
	o.ID = r.orders
	answer := make(chan link.Message, 1)
	r.pending[o.ID] = answer
	t.mu.Unlock()
	if json.NewEncoder(r.conn).Encode(o) != nil {
		_ = r.conn.Close() // Serve notices, and ends the run
	}
	return answer, r.done
}

// Pause holds workers before they take a key.
func (t *Taps) Pause() { t.order(link.Order{Do: link.DoPause}) }

// Resume lets workers take keys again, and sends held writes.
func (t *Taps) Resume() { t.order(link.Order{Do: link.DoResume}) }

// Paused reports whether a pause is ordered.
func (t *Taps) Paused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mode.Paused
}

// Step lets one worker of each manager take one key and reconcile it to its end. It pauses a running loop.
func (t *Taps) Step() { t.order(link.Order{Do: link.DoStep}) }

// StepBy is Step, recorded as the action of an actor.
func (t *Taps) StepBy(actor string) { t.order(link.Order{Do: link.DoStep, Actor: actor}) }

// StepCall continues to the next write and holds it. It pauses a running loop.
func (t *Taps) StepCall() { t.order(link.Order{Do: link.DoStepCall}) }

// HoldWrites holds each write of a reconcile before it is sent.
func (t *Taps) HoldWrites() { t.order(link.Order{Do: link.DoHold}) }

// Release sends the held writes and stops holding writes.
func (t *Taps) Release() { t.order(link.Order{Do: link.DoRelease}) }

// Close releases everything that is held, for good; the taps go on recording.
func (t *Taps) Close() { t.order(link.Order{Do: link.DoClose}) }

// Flush returns when the journal has what the process has recorded so far.
func (t *Taps) Flush() { t.order(link.Order{Do: link.DoFlush}) }

// Probe puts a key into a controller's work queue, to see what one more reconcile does. It reports whether it did; it does
// not if the controller has no queue now, or the key is in it.
func (t *Taps) Probe(controller string, key trace.Key) bool {
	return t.order(link.Order{Do: link.DoProbe, Controller: controller, Namespace: key.Namespace, Name: key.Name}).Found
}

// metricsPatience is how long a process may take to tell its metrics.
const metricsPatience = 2 * time.Second

// Metrics returns the metrics of the process in the text format of Prometheus, also those that its author added.
func (t *Taps) Metrics() ([]byte, error) {
	t.mu.Lock()
	connected := t.connected()
	t.mu.Unlock()
	if !connected {
		return nil, errors.New("no process of it runs")
	}
	told, done := t.send(link.Order{Do: link.DoMetrics})
	late := time.NewTimer(metricsPatience)
	defer late.Stop()
	select {
	case m := <-told:
		if m.Metrics == "" {
			return nil, errors.New("the process told none")
		}
		return []byte(m.Metrics), nil
	case <-done:
		return nil, errors.New("the process ended")
	case <-late.C:
		return nil, fmt.Errorf("the process told none in %v; it may be stopped, as by a debugger", metricsPatience)
	}
}

// Controllers returns the sorted names of the controllers whose work queues exist now.
func (t *Taps) Controllers() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == nil {
		return nil
	}
	return slices.Clone(t.run.state.Controllers)
}

// AwaitServing returns when the workers of each of the process's controllers, at least one, take keys: in the run that is
// connected, or the next one. It ends with the cause of the context's end.
func (t *Taps) AwaitServing(ctx context.Context) error {
	for {
		t.mu.Lock()
		changed, serving := t.changed, t.run != nil && t.run.state.Serving
		t.mu.Unlock()
		if serving {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// ReconcileOf returns the zero reference: a request of another process is known by its header only; see [Taps.Resolve].
func (t *Taps) ReconcileOf(context.Context) trace.ReconcileRef { return trace.ReconcileRef{} }

// resolvePatience is how long the events before a request may take to arrive.
const resolvePatience = time.Second

// Resolve returns the reconcile that a request of the process belongs to, from the value of its [link.Header]; zero if it
// belongs to none. It waits until the events before the request have arrived, at most a second; without them the
// reference has no ID.
func (t *Taps) Resolve(ctx context.Context, header string) trace.ReconcileRef {
	var o link.Origin
	if json.Unmarshal([]byte(header), &o) != nil || o.Reconcile <= 0 {
		return trace.ReconcileRef{}
	}
	ctx, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.run
	for r != nil && !r.over && r.last < o.Seq && ctx.Err() == nil {
		arrived := r.next()
		t.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
		}
		t.mu.Lock()
	}
	ref := trace.ReconcileRef{Controller: o.Controller, Key: trace.Key{Namespace: o.Namespace, Name: o.Name}}
	if r != nil {
		ref.ID = r.numbers.of[o.Reconcile]
	}
	return ref
}
