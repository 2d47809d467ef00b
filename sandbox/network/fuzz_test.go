package network

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// FuzzRequest sends what anybody may send to the hub's proxy: there is an answer, no panic, and nothing of it reaches
// a node without the password.
func FuzzRequest(f *testing.F) {
	p := newPlan(f)
	h := openHub(f, p, HubOptions{Password: "secret"})
	nodes, err := net.Listen("unix", p.NodeSocket(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = nodes.Close() })
	reached := make(chan struct{}, 1)
	go func() {
		for {
			c, err := nodes.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			reached <- struct{}{}
		}
	}()
	for _, request := range []string{
		"CONNECT 10.244.1.2:80 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT 10.244.1.2:80 HTTP/1.1\r\nHost: x\r\nLab-Client: 10.244.1.2\r\nLab-Namespace: default\r\n\r\n",
		"CONNECT 10.244.1.2:80 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic bGFiOg==\r\n\r\n",
		"GET http://10.244.1.2/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n", "\x16\x03\x01",
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		if bytes.Contains(request, []byte("bGFiOnNlY3JldA")) {
			t.Skip("it knows the password")
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			return // net/http answers such requests
		}
		w := httptest.NewRecorder()
		h.handleUser(w, r)
		if w.Code != http.StatusProxyAuthRequired && w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", request, w.Code)
		}
		select {
		case <-reached:
			t.Errorf("%q reaches a node", request)
		default:
		}
	})
}

// FuzzAddress asks the hub for any address through a tunnel: either it is refused, with an error that says the same on
// both sides, or it is one of those that nobody in the test has.
func FuzzAddress(f *testing.F) {
	p := newPlan(f)
	h := openHub(f, p, HubOptions{APIServer: "127.0.0.1:1"})
	n := openNode(f, p, 1)
	for _, address := range []string{
		"web.shop.svc:80", "10.244.1.2:80", "10.96.0.1:443", "kubernetes.default.svc:443", "a b:80", "a\r\nHost: b:80", "::1", ":", "", "a%b.svc:80", "[::ffff:10.96.0.9%x]:80",
		"10.244.1.2:99999", "10-244-1-2.shop.pod:http",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		host, _, err := net.SplitHostPort(address)
		if err == nil && isOutside(host) {
			t.Skip("the world is not to be asked")
		}
		here, err := h.DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = here.Close()
			t.Fatalf("%q: connected", address)
		}
		there, byNode := n.DialContext(t.Context(), "tcp", address)
		if byNode == nil {
			_ = there.Close()
			t.Fatalf("%q: connected", address)
		}
		if err.Error() != byNode.Error() {
			t.Errorf("%q: the hub says %q, the node %q", address, err, byNode)
		}
		if strings.ContainsAny(Explain(err), "\r\n") {
			t.Errorf("%q is explained with %q", address, Explain(err))
		}
	})
}

func isOutside(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		_, _, ok := nodeOf(a)
		return !ok && !podNet.Contains(a) && !serviceNet.Contains(a)
	}
	_, outside := meanings(host, defaultNamespace)
	return outside && isHost(host)
}

// FuzzAnswer reads what a node might answer.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nLab-Address: 10.244.1.2:80\r\n\r\nhello",
		"HTTP/1.1 502 no\r\nLab-Cause: ECONNREFUSED\r\nLab-Address: 10.244.1.2:80\r\nLab-Reason: why\r\n\r\n",
		"HTTP/1.1 502 no\r\nLab-Cause: unknown host\r\n\r\n", "HTTP/1.1 502 no\r\nContent-Length: 99\r\n\r\n", "", "HTTP",
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		near, far := net.Pipe()
		go func() {
			_, _ = bufio.NewReader(far).ReadString(' ')
			go func() { _, _ = io.Copy(io.Discard, far) }()
			_, _ = far.Write(answer)
			_ = far.Close()
		}()
		c, err := ask(halfPipe{near}, "10.244.1.2:80", client{})
		if err != nil {
			if e, is := errors.AsType[*Error](err); is && e.Explain() == "" {
				t.Errorf("%q: no words", answer)
			}
			_ = near.Close()
			return
		}
		rest, _ := io.ReadAll(c)
		if !bytes.HasSuffix(answer, rest) {
			t.Errorf("%q: read %q", answer, rest)
		}
		_ = near.Close()
	})
}

// halfPipe is a net.Pipe, of which no direction can be closed alone.
type halfPipe struct{ net.Conn }

func (p halfPipe) CloseWrite() error { return p.Close() }

// FuzzPodUser: whoever is taken for a pod is one.
func FuzzPodUser(f *testing.F) {
	f.Add("shop.10.244.1.2")
	f.Add("shop\r\n.10.244.1.2")
	f.Fuzz(func(t *testing.T, user string) {
		c, ok := parsePodUser(user)
		if ok && (podUser(c.address, c.namespace) != user || !isHost(user)) {
			t.Errorf("%q is %+v", user, c)
		}
	})
}
