package operators

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/metacontroller"
)

// Metacontroller returns an operator that runs controllers which are written as webhooks. It is none of [All], because it
// does nothing by itself. hooks answers the requests to all webhooks; nil: they go where their URLs say.
func Metacontroller(hooks http.RoundTripper) Operator {
	return Operator{
		Name:             "metacontroller",
		Summary:          "runs controllers that are written as webhooks, in any language",
		Source:           "Metacontroller (its published contract)",
		AddToScheme:      metacontroller.AddToScheme,
		Manifests:        metacontroller.Manifests(),
		Namespace:        "metacontroller",
		ServiceAccount:   "metacontroller",
		LeaderElectionID: metacontroller.LeaderElectionID,
		New: func() Instance {
			return &metacontrollerInstance{variant: metacontroller.Variant, options: metacontroller.Options{Transport: hooks}}
		},
	}
}

type metacontrollerInstance struct {
	variant string
	options metacontroller.Options
}

func (m *metacontrollerInstance) Flags(fs *pflag.FlagSet) {
	fs.Var(oneOf{&m.variant, []string{metacontroller.Variant}}, "variant", "the only one")
}

func (m *metacontrollerInstance) Variant() string { return m.variant }

func (m *metacontrollerInstance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return metacontroller.CRDs()
}

// Reach has webhooks found by the names of Services, if nobody else answers them. What is on this machine is asked directly.
func (m *metacontrollerInstance) Reach(dial func(ctx context.Context, address string) (net.Conn, error)) {
	if m.options.Transport != nil {
		return
	}
	m.options.Transport = &http.Transport{
		DisableKeepAlives: true, // a connection outlives no life of the operator
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			if net.ParseIP(host) == nil && strings.Count(host, ".") == 1 { // name.namespace
				host += ".svc"
			}
			return dial(ctx, net.JoinHostPort(host, port))
		},
	}
}

func (m *metacontrollerInstance) Called(called func(context.Context, metacontroller.Call)) {
	m.options.Called = called
}

func (m *metacontrollerInstance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	options := m.options
	options.Controller = o
	return metacontroller.SetupWithManager(mgr, options)
}

func (m *metacontrollerInstance) Demo() Demo { return noDemo{} }

// noDemo is that of an operator that does nothing by itself.
type noDemo struct{}

func (noDemo) Flags(*pflag.FlagSet) {}

func (noDemo) Values() (map[string]any, error) { return nil, nil }

func (noDemo) Caption(string, json.RawMessage) string { return "" }

func (noDemo) Summary(context.Context, client.Reader, func(english, japanese string) string) ([][2]string, error) {
	return nil, nil
}
