//go:build go1.23

package taps

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// What controller-runtime v0.24 logs, and with which keys. The tests fail if a new version changes them.
const (
	keyController  = "controller"
	keyNamespace   = "namespace"
	keyName        = "name"
	keyReconcileID = "reconcileID"

	messageFailed   = "Reconciler error"
	messagePanicked = "Observed a panic"
	keyStack        = "stacktrace"
	keyPanic        = "panic"
)

// sink records log lines in the journal and passes them on. controller-runtime gives each reconcile a logger with a
// reconcileID; that connects the reconcile with the key that a worker has just taken, without wrapping the reconciler.
type sink struct {
	taps *Taps
	next logr.LogSink // may be nil

	controller string
	key        trace.Key
	reconcile  *runningReconcile // set once the reconcileID is known
	name       string
	values     []any // values of the operator itself; those before the reconcileID are controller-runtime's
}

// Init is part of logr.LogSink.
func (s *sink) Init(info logr.RuntimeInfo) {
	if s.next != nil {
		info.CallDepth++
		s.next.Init(info)
	}
}

// Enabled reports whether the journal or the next sink records lines of a level.
func (s *sink) Enabled(level int) bool {
	return level <= s.taps.opts.LogLevel || s.next != nil && s.next.Enabled(level)
}

// Info records a line.
func (s *sink) Info(level int, msg string, keysAndValues ...any) {
	if level <= s.taps.opts.LogLevel {
		s.append(trace.Event{Message: msg, Level: level, Values: texts(s.values, keysAndValues)})
	}
	if s.next != nil && s.next.Enabled(level) {
		s.next.Info(level, msg, keysAndValues...)
	}
}

// Error records a line with an error. The line with which controller-runtime ends a failed reconcile becomes part of
// the reconcile's end instead.
func (s *sink) Error(err error, msg string, keysAndValues ...any) {
	if s.next != nil {
		s.next.Error(err, msg, keysAndValues...)
	}
	switch {
	case s.reconcile != nil && msg == messageFailed:
		s.reconcile.fail(err)
		return
	case s.reconcile != nil && msg == messagePanicked:
		s.reconcile.panic()
		s.append(panicEvent(keysAndValues))
		return
	}
	e := trace.Event{Message: msg, Values: texts(s.values, keysAndValues), Error: "error"}
	if err != nil {
		e.Error = err.Error()
	}
	s.append(e)
}

// panicEvent converts controller-runtime's line about a panic to an event.
func panicEvent(keysAndValues []any) trace.Event {
	e := trace.Event{Message: messagePanicked, Error: keyPanic}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		switch keysAndValues[i] {
		case keyStack:
			e.Stack = text(keysAndValues[i+1])
		case keyPanic:
			e.Error = "panic: " + text(keysAndValues[i+1])
		}
	}
	return e
}

func (s *sink) append(e trace.Event) {
	e.Kind, e.Controller, e.Key = trace.KindLog, s.controller, s.key
	if r := s.reconcile; r != nil {
		e.Controller, e.Key, e.Reconcile, e.Cause = r.controller, r.key, r.id, r.start
	}
	if s.name != "" {
		e.Message = s.name + ": " + e.Message
	}
	s.taps.append(e)
}

// WithValues returns a sink that adds values to each line. The value reconcileID connects it to the reconcile that has
// just begun.
func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	c := *s
	c.values = append(slices.Clip(s.values), keysAndValues...)
	if s.next != nil {
		c.next = s.next.WithValues(keysAndValues...)
	}
	if s.reconcile != nil {
		return &c
	}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		c.learn(keysAndValues[i], keysAndValues[i+1])
	}
	return &c
}

// learn reads what controller-runtime puts into a logger's values.
func (s *sink) learn(key, value any) {
	switch key {
	case keyController:
		s.controller = text(value)
	case keyNamespace:
		s.key.Namespace = text(value)
	case keyName:
		s.key.Name = text(value)
	case keyReconcileID:
		if id, ok := value.(types.UID); ok {
			s.reconcile = s.taps.bind(s.controller, s.key, id)
			s.values = nil
		}
	}
}

// WithName returns a sink whose lines have a name.
func (s *sink) WithName(name string) logr.LogSink {
	c := *s
	c.name = name
	if s.name != "" {
		c.name = s.name + "." + name
	}
	if s.next != nil {
		c.next = s.next.WithName(name)
	}
	return &c
}

// texts formats keys and values.
func texts(lists ...[]any) []string {
	var out []string
	for _, list := range lists {
		for _, v := range list {
			out = append(out, text(v))
		}
	}
	return out
}

// text formats one value. A value's own String method may panic, for example on a nil pointer; fmt then puts the panic
// into the text.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}

// logConstructor wraps an operator's own log constructor, so that its lines are recorded and its reconciles recognized.
func (t *Taps) logConstructor(controller string, inner func(*reconcile.Request) logr.Logger) func(*reconcile.Request) logr.Logger {
	return func(r *reconcile.Request) logr.Logger {
		log := inner(r)
		if _, tapped := log.GetSink().(*sink); tapped {
			return log
		}
		s := &sink{taps: t, next: log.GetSink(), controller: controller}
		if r != nil {
			s.key = traceKey(*r)
		}
		return logr.New(s)
	}
}
