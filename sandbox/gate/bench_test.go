package gate_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/gate"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// BenchmarkCall measures a call to an API server that costs nothing: directly, through the gate, and with the recorder.
// The gate's cost is the difference.
func BenchmarkCall(b *testing.B) {
	object := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"default","uid":"u","resourceVersion":"5"}}`
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, object)
	}))
	api.EnableHTTP2 = true
	api.StartTLS()
	defer api.Close()
	cluster := &rest.Config{Host: api.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}),
	}}
	journal := trace.New(trace.Options{})
	recorder := taps.New(journal, taps.Options{Operator: "pyop"})
	for _, way := range []struct {
		name string
		wrap func(http.RoundTripper) http.RoundTripper
	}{{name: "direct"}, {name: "gate"}, {name: "recorder", wrap: func(next http.RoundTripper) http.RoundTripper { return recorder.Recorder(next, nil) }}} {
		b.Run(way.name, func(b *testing.B) {
			config := cluster
			if way.name != "direct" {
				g, err := gate.Open(gate.Options{Name: "pyop", Cluster: cluster})
				if err != nil {
					b.Fatal(err)
				}
				injector := fault.NewFaults(fault.FaultsOptions{Journal: journal, Effects: &effects{}}).Injector("pyop")
				defer func() { injector.Die(); _ = g.Close() }()
				g.Use(gate.Run{Injector: injector, Wrap: way.wrap})
				if config, err = clientcmd.RESTConfigFromKubeConfig(g.Kubeconfig()); err != nil {
					b.Fatal(err)
				}
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				b.Fatal(err)
			}
			defer client.CloseIdleConnections()
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, config.Host+maps+"/m", nil)
				if err != nil {
					b.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}
