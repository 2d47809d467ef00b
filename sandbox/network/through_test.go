package network

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

// TestDialThrough: who goes by way of the proxy reaches what the hub does, and is told the same errors.
func TestDialThrough(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		c := newCluster(t, p)
		by := func(ctx context.Context, network, address string) (net.Conn, error) {
			return DialThrough(ctx, c.ProxyURL(), network, address)
		}
		pod := addPod(t, c.node)
		l := listen(t, pod, 8080)
		greet(t, l, "hello")
		for _, dial := range []dialer{by, c.DialContext} {
			err := refusal(t, dial, "web.shop.svc:80")
			if want := "connect web.shop.svc:80: connection refused: the Service has no ready endpoints"; !errors.Is(err, syscall.ECONNREFUSED) || Explain(err) != want {
				t.Errorf("without endpoints: %v", Explain(err))
			}
		}
		c.route(t, pod)
		if got := greeting(t, by, "web.shop.svc:80"); got != "hello" {
			t.Errorf("got %q", got)
		}
		if dns, is := errors.AsType[*net.DNSError](refusal(t, by, "nobody.shop.svc:80")); !is || !dns.IsNotFound {
			t.Error("an unknown name is none to who goes by way of the proxy")
		}
		for _, bad := range []string{"web.shop.svc", "web\r\nHost: other:80", ""} {
			if err := refusal(t, by, bad); err == nil {
				t.Errorf("connected to %q", bad)
			}
		}
	})
}

func TestDialThroughNoProxy(t *testing.T) {
	for proxy, want := range map[string]string{
		"":                       "no proxy",
		"http://127.0.0.1:1":     "by way of the sandbox's proxy",
		"https://lab@127.0.0.1:": "no proxy",
	} {
		_, err := DialThrough(t.Context(), proxy, "tcp", "web.shop.svc:80")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", proxy, err)
		}
	}
	c := newCluster(t, newPlan(t))
	wrong := strings.Replace(c.ProxyURL(), "@", "x@", 1)
	if _, err := DialThrough(t.Context(), wrong, "tcp", "web.shop.svc:80"); err == nil || !strings.Contains(err.Error(), "407") {
		t.Errorf("with a wrong password: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := DialThrough(cancelled, c.ProxyURL(), "tcp", "web.shop.svc:80"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
