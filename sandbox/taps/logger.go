//go:build go1.23

package taps

import (
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// tapControllerLogger observes the logger that a manager gives its controllers, if it is not the manager's own.
func (t *Taps) tapControllerLogger(o *ctrl.Options) {
	if s := o.Controller.Logger.GetSink(); s != nil {
		o.Controller.Logger = logr.New(&sink{taps: t, next: s})
	}
}
