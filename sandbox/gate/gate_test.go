package gate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	stdmaps "maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/gate"
	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// effects are the effects of faults; they count crashes.
type effects struct{ crashes atomic.Int32 }

func (e *effects) Crash(string, time.Duration) { e.crashes.Add(1) }
func (*effects) Kill(string) error             { return nil }
func (*effects) PatchAsOther(context.Context, schema.GroupVersionResource, string, string, []byte) error {
	return nil
}

func (*effects) AwaitDone(context.Context, string, string, string) {}

func (*effects) Break(v1alpha1.FaultSpec) (of []string, repair func() error, err error) {
	return nil, nil, fault.ErrNobody
}

// stand is a gate in front of an API server.
type stand struct {
	*testing.T
	gate    *gate.Gate
	faults  *fault.Faults
	effects effects
	journal *trace.Journal
}

// newStand opens a gate named "pyop" in front of a handler, which is served with HTTP/2. Its token there is "rights".
func newStand(t *testing.T, handler http.HandlerFunc) *stand {
	t.Helper()
	api := httptest.NewUnstartedServer(handler)
	api.EnableHTTP2 = true
	api.StartTLS()
	t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
	return open(t, &rest.Config{Host: api.URL, BearerToken: "rights", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}),
	}})
}

// open opens a gate to a cluster.
func open(t *testing.T, cluster *rest.Config) *stand {
	t.Helper()
	s := &stand{T: t, journal: trace.New(trace.Options{})}
	s.faults = fault.NewFaults(fault.FaultsOptions{Journal: s.journal, Effects: &s.effects})
	var err error
	if s.gate, err = gate.Open(gate.Options{Name: "pyop", Cluster: cluster, Namespace: "music"}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.LogJournal(t, s.journal)
	t.Cleanup(func() {
		s.faults.Close()
		if err := errors.Join(s.gate.Close(), s.gate.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// live begins a run.
func (s *stand) live(r gate.Run) *fault.Injector {
	s.Helper()
	r.Injector = s.faults.Injector("pyop")
	s.Cleanup(r.Injector.Die)
	s.gate.Use(r)
	return r.Injector
}

// config returns what a program reads from the gate's kubeconfig.
func (s *stand) config() *rest.Config {
	s.Helper()
	c, err := clientcmd.RESTConfigFromKubeConfig(s.gate.Kubeconfig())
	if err != nil {
		s.Fatal(err)
	}
	c.QPS = -1
	return c
}

// client returns an HTTP client of the gate; only of HTTP/1.1 if that is wanted.
func (s *stand) client(protos ...string) *http.Client {
	s.Helper()
	c := s.config()
	c.NextProtos = protos
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(h.CloseIdleConnections)
	return h
}

func (s *stand) request(path string, header http.Header) *http.Request {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.config().Host+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	stdmaps.Copy(req.Header, header)
	return req
}

// get returns the status of an answer and its body.
func (s *stand) get(c *http.Client, path string, header http.Header) (int, string) {
	s.Helper()
	resp, err := c.Do(s.request(path, header))
	if err != nil {
		s.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

const maps = "/api/v1/namespaces/default/configmaps"

// TestRequests checks what the API server gets, by both protocols.
func TestRequests(t *testing.T) {
	sandboxtest.NoLeaks(t)
	s := newStand(t, func(w http.ResponseWriter, req *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s %s %q", req.Method, req.RequestURI, req.UserAgent(), req.Header.Get("Authorization"), req.Header.Get(link.Header))
	})
	s.live(gate.Run{})
	want := `GET ` + maps + `/m?x=1 pyop Bearer rights ""`
	for _, protos := range [][]string{nil, {"http/1.1"}} {
		code, got := s.get(s.client(protos...), maps+"/m?x=1", http.Header{link.Header: {"{}"}, "User-Agent": {"python"}})
		if code != http.StatusOK || got != want {
			t.Errorf("%v: %d %s; want %s", protos, code, got, want)
		}
	}
	if n := s.gate.Requests(); n != 2 {
		t.Errorf("%d requests", n)
	}
	k, err := clientcmd.Load(s.gate.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if c := k.Contexts[k.CurrentContext]; c == nil || c.Namespace != "music" || len(k.AuthInfos) != 1 || k.AuthInfos[c.AuthInfo].Exec != nil {
		t.Errorf("%+v", k)
	}
}

// TestOtherTokens: whoever sends a token of its own gets its own permissions, and not those of the operator.
func TestOtherTokens(t *testing.T) {
	sandboxtest.NoLeaks(t)
	s := newStand(t, func(w http.ResponseWriter, req *http.Request) { _, _ = fmt.Fprint(w, req.Header["Authorization"]) })
	s.live(gate.Run{})
	for _, token := range []string{"Bearer other", "Bearer " + s.config().BearerToken + "x"} {
		for _, protos := range [][]string{nil, {"http/1.1"}} {
			if code, got := s.get(s.client(protos...), maps, http.Header{"Authorization": {token}}); code != http.StatusOK || got != "["+token+"]" {
				t.Errorf("%v: %d %s; want %s", protos, code, got, token)
			}
		}
	}
}

// TestRefusals checks that nothing passes without a token or before the first run, and what is said.
func TestRefusals(t *testing.T) {
	s := newStand(t, func(http.ResponseWriter, *http.Request) { t.Error("it passed") })
	c := s.client("http/1.1")
	check := func(token string, code int, words string) {
		t.Helper()
		got, body := s.get(c, maps, http.Header{"Authorization": {token}})
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || got != code || int(status.Code) != code || !strings.Contains(status.Message, words) {
			t.Errorf("%q: %d %s %v", token, got, body, err)
		}
	}
	right := "Bearer " + s.config().BearerToken
	check(right, http.StatusServiceUnavailable, "has not begun the run of pyop")
	s.live(gate.Run{})
	for _, token := range []string{"Bearer", "Basic " + s.config().BearerToken} {
		check(token, http.StatusUnauthorized, "the token in its own kubeconfig")
	}
	if n := s.gate.Requests(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]*rest.Config{
		"address":   {Host: "https://bad host"},
		"authority": {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("nothing")}},
	} {
		g, err := gate.Open(gate.Options{Name: "x", Cluster: c})
		if err == nil {
			t.Error(name, "is taken", g.Close())
		}
	}
}

// TestStreams checks that watches and logs are flushed by both protocols, that connections are upgraded although the API
// server speaks HTTP/2, and that all of it ends when the operator dies.
func TestStreams(t *testing.T) {
	s := newStand(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "" {
			echo(t, w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one","uid":"u","resourceVersion":"1"}}}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	})
	injector := s.live(gate.Run{})
	streams := map[string]io.Reader{}
	for name, c := range map[string]*http.Client{"HTTP/1.1": s.client("http/1.1"), "HTTP/2.0": s.client()} {
		for _, path := range []string{maps + "?watch=true", "/api/v1/namespaces/default/pods/p/log?follow=true"} {
			resp, err := c.Do(s.request(path, nil))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			lines := bufio.NewReader(resp.Body)
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "one") || resp.Proto != name {
				t.Fatalf("%s by %s: %q %v", path, resp.Proto, line, err)
			}
			streams[name+path] = lines
		}
	}
	resp, err := s.client("http/1.1").Do(s.request("/api/v1/namespaces/default/pods/p/exec", http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "Doko\n"); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || line != "you said Doko\n" {
		t.Fatalf("%q %v", line, err)
	}
	streams["the upgraded connection"] = answers
	injector.Die()
	for name, r := range streams {
		if n, _ := io.Copy(io.Discard, r); n != 0 {
			t.Errorf("%s went on", name)
		}
	}
}

// echo upgrades a connection and answers each line.
func echo(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	for rw.Flush() == nil {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = rw.WriteString("you said " + line)
	}
}

// TestCrash checks that a crash ends what the operator waits for and everything it begins, and that the next run passes.
func TestCrash(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := newStand(t, func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		seen = append(seen, req.Method)
		mu.Unlock()
		_, _ = io.WriteString(w, "{}")
	})
	var killed atomic.Bool
	s.live(gate.Run{}).OnDie(func() { killed.Store(true) })
	err := s.faults.Arm("f", v1alpha1.FaultSpec{
		Match: &v1alpha1.FaultMatch{Verbs: []string{"delete"}}, Crash: &v1alpha1.CrashFault{When: v1alpha1.Before},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, protos := range [][]string{{"http/1.1"}, nil} {
		c := s.client(protos...)
		req := s.request(maps+"/m", nil)
		req.Method = http.MethodDelete
		for range 2 {
			if resp, err := c.Do(req); err == nil {
				t.Errorf("%v: %s", protos, resp.Status)
				_ = resp.Body.Close()
			}
			if !killed.Load() {
				t.Errorf("%v: the program has seen the end of its call before it was killed", protos)
			}
		}
	}
	sandboxtest.Eventually(t, "the crash", func() bool { return s.effects.crashes.Load() == 1 })
	if len(seen) != 0 {
		t.Errorf("the API server saw %v", seen)
	}
	s.live(gate.Run{})
	for _, protos := range [][]string{{"http/1.1"}, nil} {
		if code, _ := s.get(s.client(protos...), maps+"/m", nil); code != http.StatusOK {
			t.Errorf("the next run gets %d", code)
		}
	}
	if n := s.gate.Requests(); n != 2 {
		t.Errorf("%d requests in the next run", n)
	}
}

// TestNextRun checks that a connection of the run before ends although its operator did not die.
func TestNextRun(t *testing.T) {
	s := newStand(t, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "Zun\n")
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	})
	s.live(gate.Run{})
	resp, err := s.client().Do(s.request("/api/v1/namespaces/default/pods/p/log?follow=true", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	s.live(gate.Run{})
	if raw, err := io.ReadAll(resp.Body); err == nil || len(raw) != 0 {
		t.Errorf("%q %v", raw, err)
	}
}

// TestReconcile checks that a fault knows the reconcile that the header names, and that nobody asks without a fault.
func TestReconcile(t *testing.T) {
	s := newStand(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	var asked []string
	s.live(gate.Run{ReconcileOf: func(header string) trace.ReconcileRef {
		asked = append(asked, header)
		if header == "none" {
			return trace.ReconcileRef{}
		}
		return trace.ReconcileRef{ID: 4, Controller: "song", Key: trace.Key{Namespace: "default", Name: "s"}}
	}})
	c := s.client()
	s.get(c, maps, http.Header{link.Header: {"early"}})
	match := &v1alpha1.FaultMatch{Verbs: []string{"list"}}
	for i, want := range []string{"list configmaps default/ in reconcile #4", "list configmaps default/", "list configmaps default/"} {
		name := fmt.Sprint("f", i)
		if err := s.faults.Arm(name, v1alpha1.FaultSpec{Match: match, API: &v1alpha1.APIFault{}}); err != nil {
			t.Fatal(err)
		}
		header := http.Header{link.Header: {[]string{"some", "none", ""}[i]}}
		if code, _ := s.get(c, maps, header); code != http.StatusInternalServerError {
			t.Errorf("%s: %d", name, code)
		}
		events := s.journal.Since(0)
		e := events[len(events)-1]
		if e.Message != want || (i == 0) != (e.Reconcile == 4 && e.Controller == "song" && e.Key.Name == "s") {
			t.Errorf("%+v", e)
		}
	}
	if got := fmt.Sprint(asked); got != "[some none]" {
		t.Errorf("asked for %s", got)
	}
}

// TestReconcileOfNobody checks that a run that knows no reconciles records the requests that name one, too.
func TestReconcileOfNobody(t *testing.T) {
	s := newStand(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	recorded := 0
	s.live(gate.Run{Wrap: func(next http.RoundTripper) http.RoundTripper {
		return taps.New(s.journal, taps.Options{Operator: "toy"}).Recorder(next, func() { recorded++ })
	}})
	s.get(s.client(), maps, http.Header{link.Header: {"some"}})
	if recorded != 1 {
		t.Errorf("%d requests were recorded", recorded)
	}
}
