package labapi

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// operatorMetrics serves the metrics of an operator, as the operator itself does where it has an endpoint for them.
type operatorMetrics struct{ backend OperatorBackend }

var _ rest.Connecter = operatorMetrics{}

// New implements [rest.Storage].
func (operatorMetrics) New() runtime.Object { return &v1alpha1.Operator{} }

// Destroy implements [rest.Storage].
func (operatorMetrics) Destroy() {}

// ConnectMethods implements [rest.Connecter].
func (operatorMetrics) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions implements [rest.Connecter]: there are none.
func (operatorMetrics) NewConnectOptions() (runtime.Object, bool, string) { return nil, false, "" }

// Connect implements [rest.Connecter].
func (m operatorMetrics) Connect(_ context.Context, name string, _ runtime.Object, _ rest.Responder) (http.Handler, error) {
	text, err := m.backend.OperatorMetrics(name)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text) // who asked is gone
	}), nil
}
