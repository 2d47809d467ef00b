package network

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/egressselector"
)

// egress is the API server's own way out, configured for the hub.
func egress(t *testing.T, p Plan) dialer {
	t.Helper()
	selector, err := egressselector.NewEgressSelector(&apiserver.EgressSelectorConfiguration{
		EgressSelections: []apiserver.EgressSelection{{
			Name: "cluster",
			Connection: apiserver.Connection{
				ProxyProtocol: apiserver.ProtocolHTTPConnect,
				Transport:     &apiserver.Transport{UDS: &apiserver.UDSTransport{UDSName: p.HubSocket()}},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dial, err := selector.Lookup(egressselector.Cluster.AsNetworkContext())
	if err != nil {
		t.Fatal(err)
	}
	return dialer(dial)
}

// TestEgressOfAPIServer uses the code of the API server.
func TestEgressOfAPIServer(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		c := newCluster(t, p)
		pod := addPod(t, c.node)
		webhook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "webhook")
		}))
		_ = webhook.Listener.Close() // it has one of its own
		webhook.Listener = listen(t, pod, 8080)
		webhook.StartTLS()
		defer webhook.Close()
		c.route(t, pod)
		outside := httptest.NewTLSServer(webhook.Config.Handler)
		defer outside.Close()
		if _, err := c.node.Serve(c.node.IP(), 10250, outside.Listener.Addr().String()); err != nil {
			t.Fatal(err)
		}

		dial := egress(t, p)
		transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		for _, address := range []string{
			pod.IP() + ":8080", "10.96.1.1:80", "web.shop.svc:80", "172.18.0.2:10250", "node-1:10250",
			outside.Listener.Addr().String(),
		} {
			if got := get(t, client, "https://"+address+"/"); got != "200 webhook" {
				t.Errorf("%s: %s", address, got)
			}
		}
		// What is wrong is in the API server's error.
		c.route(t)
		if got := get(t, client, "https://web.shop.svc:80/"); got != "200 webhook" {
			t.Errorf("the connection from before: %s", got)
		}
		_, err := dial(t.Context(), "tcp", "web.shop.svc:80")
		if err == nil || !strings.HasSuffix(err.Error(),
			"code 502: 502 connect web.shop.svc:80: connection refused: the Service has no ready endpoints") {
			t.Errorf("got %v", err)
		}
	})
}
