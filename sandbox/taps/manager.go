//go:build go1.23

package taps

import (
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Manager returns mgr with the taps' work queue in each controller that is added to it, for operators whose controller
// options cannot be set. The controller's type is internal to controller-runtime, but its fields NewQueue and
// LogConstructor are exported; a test pins that. A controller without these fields, or with requests of another type,
// is added as it is, and a note in the journal says that it is not observed.
func (t *Taps) Manager(mgr manager.Manager) manager.Manager {
	return tappedManager{Manager: mgr, taps: t}
}

type tappedManager struct {
	manager.Manager
	taps *Taps
}

// Add adds a runnable to the manager. If it is a controller, the taps are set into it first.
func (m tappedManager) Add(r manager.Runnable) error {
	if reconciles(r) && !m.taps.instrument(r) {
		m.taps.append(trace.Event{
			Kind: trace.KindNote, Message: "a controller's work queue cannot be observed: its requests are not reconcile.Request",
		})
	}
	return m.Manager.Add(r)
}

// reconciles reports whether a runnable is a controller.
func reconciles(r manager.Runnable) bool {
	s := structOf(r)
	return s.IsValid() && s.FieldByName("Do").IsValid()
}

// structOf returns the struct that a runnable points to, or the zero value.
func structOf(r manager.Runnable) reflect.Value {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.Elem()
}

type (
	newQueueFunc       = func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
	logConstructorFunc = func(*reconcile.Request) logr.Logger
)

// instrument sets the taps into a controller and reports whether that was possible.
func (t *Taps) instrument(r manager.Runnable) bool {
	s := structOf(r)
	queue, log, name := s.FieldByName("NewQueue"), s.FieldByName("LogConstructor"), s.FieldByName("Name")
	if !queue.IsValid() || !queue.CanSet() || queue.Type() != reflect.TypeFor[newQueueFunc]() {
		return false
	}
	queue.Set(reflect.ValueOf(newQueueFunc(t.newQueueFunc)))
	if log.IsValid() && log.CanSet() && name.Kind() == reflect.String {
		if inner, ok := log.Interface().(logConstructorFunc); ok && inner != nil {
			log.Set(reflect.ValueOf(t.logConstructor(name.String(), inner)))
		}
	}
	return true
}
