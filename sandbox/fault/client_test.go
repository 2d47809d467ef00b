package fault_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// web starts an API server that counts requests by method, and answers every request with the ConfigMap m.
func web(t *testing.T) (address string, count func(method string) int) {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		counts[req.Method]++
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"default","uid":"u","resourceVersion":"5"}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, func(method string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[method]
	}
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf" // as controller-runtime's client for such kinds
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// replies are all replies, with how client-go recognizes them.
var replies = []struct {
	reply v1alpha1.APIReply
	is    func(error) bool
	sent  int // number of calls that reach the API server
}{
	{v1alpha1.ReplyConflict, apierrors.IsConflict, 0},
	{v1alpha1.ReplyInternalError, apierrors.IsInternalError, 0},
	{v1alpha1.ReplyServiceUnavailable, apierrors.IsServiceUnavailable, 0},
	{v1alpha1.ReplyTooManyRequests, apierrors.IsTooManyRequests, 0},
	{v1alpha1.ReplyForbidden, apierrors.IsForbidden, 0},
	{v1alpha1.ReplyTimeout, func(err error) bool { return utilnet.IsTimeout(err) && errors.Is(err, context.DeadlineExceeded) }, 0},
	{v1alpha1.ReplyLost, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }, 1},
	{v1alpha1.ReplyTrue, func(err error) bool { return err == nil }, 1},
}

// TestClientGo checks that a real client gets exactly one wrong answer, and does not repeat the call by itself.
func TestClientGo(t *testing.T) {
	for _, c := range replies {
		for _, verb := range []string{trace.VerbUpdate, trace.VerbGet, trace.VerbCreate, trace.VerbDelete} {
			b := newBench(t)
			address, count := web(t)
			config := &rest.Config{Host: address}
			config.Wrap(b.injector.Wrap)
			b.arm("f", v1alpha1.FaultSpec{
				Match: &v1alpha1.FaultMatch{Verbs: []string{verb}, Name: "m"},
				API:   &v1alpha1.APIFault{Reply: c.reply, Delay: metav1.Duration{Duration: 1}},
			})
			maps := clientFor(t, config).CoreV1().ConfigMaps("default")
			method, err := do(t, maps, verb)
			if !c.is(err) {
				t.Errorf("%s of %s: %v", c.reply, verb, err)
			}
			if n := count(method); n != c.sent {
				t.Errorf("%s of %s: sent %d times", c.reply, verb, n)
			}
			b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, true)
			if _, err := do(t, maps, verb); err != nil {
				t.Errorf("after %s of %s: %v", c.reply, verb, err)
			}
			if verb == trace.VerbCreate && b.status("f").Message != "create ConfigMap default/m" {
				t.Error(b.status("f").Message) // the body is protobuf
			}
		}
	}
}

type configMaps interface {
	Get(context.Context, string, metav1.GetOptions) (*corev1.ConfigMap, error)
	Create(context.Context, *corev1.ConfigMap, metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// do makes a call of a verb.
func do(t *testing.T, maps configMaps, verb string) (method string, err error) {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "default"}}
	switch verb {
	case trace.VerbGet:
		_, err = maps.Get(t.Context(), "m", metav1.GetOptions{})
		return http.MethodGet, err
	case trace.VerbCreate:
		_, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
		return http.MethodPost, err
	case trace.VerbUpdate:
		_, err = maps.Update(t.Context(), m, metav1.UpdateOptions{})
		return http.MethodPut, err
	}
	return http.MethodDelete, maps.Delete(t.Context(), "m", metav1.DeleteOptions{})
}

// proxied serves an injector as a proxy.
func proxied(t *testing.T, g *fault.Injector, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	next := &http.Transport{}
	t.Cleanup(next.CloseIdleConnections)
	s := httptest.NewServer(fault.Proxy(u, g.Wrap(next)))
	t.Cleanup(s.Close)
	return s.URL
}

// TestProxyReplies checks the same for an operator in another process. A read whose reply is lost is left out, because
// client-go repeats it.
func TestProxyReplies(t *testing.T) {
	for _, c := range replies {
		for _, verb := range []string{trace.VerbUpdate, trace.VerbCreate, trace.VerbDelete, trace.VerbGet} {
			if verb == trace.VerbGet && c.reply == v1alpha1.ReplyLost {
				continue
			}
			b := newBench(t)
			address, count := web(t)
			b.arm("f", v1alpha1.FaultSpec{
				Match: &v1alpha1.FaultMatch{Verbs: []string{verb}, Name: "m", Kind: "ConfigMap"},
				API:   &v1alpha1.APIFault{Reply: c.reply, Delay: metav1.Duration{Duration: 1}},
			})
			maps := clientFor(t, &rest.Config{Host: proxied(t, b.injector, address)}).CoreV1().ConfigMaps("default")
			method, err := do(t, maps, verb)
			is := c.is
			switch c.reply {
			case v1alpha1.ReplyTimeout:
				is = apierrors.IsTimeout
			case v1alpha1.ReplyLost:
				is = func(err error) bool { return errors.Is(err, io.EOF) }
			}
			if !is(err) {
				t.Errorf("%s of %s: %v", c.reply, verb, err)
			}
			if n := count(method); n != c.sent {
				t.Errorf("%s of %s: sent %d times", c.reply, verb, n)
			}
			b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, true)
		}
	}
}

// TestProxyCrash checks that the connections break, before and after the call, and that nothing passes any more.
func TestProxyCrash(t *testing.T) {
	for _, when := range []v1alpha1.When{v1alpha1.Before, v1alpha1.After} {
		b := newBench(t)
		address, count := web(t)
		b.arm("f", crash(when, &v1alpha1.FaultMatch{}))
		maps := clientFor(t, &rest.Config{Host: proxied(t, b.injector, address)}).CoreV1().ConfigMaps("default")
		if _, err := do(t, maps, trace.VerbUpdate); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			t.Error("there was an answer:", err)
		}
		if _, err := do(t, maps, trace.VerbDelete); err == nil {
			t.Error("it lives")
		}
		if n, want := count(http.MethodPut), map[v1alpha1.When]int{v1alpha1.After: 1}[when]; n != want {
			t.Errorf("%s: sent %d times", when, n)
		}
		if n := count(http.MethodDelete); n != 0 {
			t.Errorf("sent %d times after death", n)
		}
		if got := b.effects.crashed(); len(got) != 1 {
			t.Error(got)
		}
	}
}

// TestProxyStreams checks that watch events are flushed at once and inspected, that logs are cut when the operator
// dies, and that connections are upgraded.
func TestProxyStreams(t *testing.T) {
	var logs atomic.Int32
	more := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			line, _ := rw.ReadString('\n')
			_, _ = rw.WriteString("you said " + line)
			_ = rw.Flush()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(req.URL.Path, "/log") {
			logs.Add(1)
			_, _ = io.WriteString(w, "Zun\n")
		} else {
			_, _ = io.WriteString(w, happening(trace.Added, "one", 1, "")+"\n"+happening(trace.Added, "two", 2, "")+"\n")
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-req.Context().Done():
		}
	}))
	defer s.Close()
	defer close(more)
	b := newBench(t)
	b.arm("f", v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{Name: "one"}, Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce}})
	address := proxied(t, b.injector, s.URL)
	get := func(path, upgrade string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if upgrade != "" {
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", upgrade)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	read := func(r io.Reader, n int) string {
		buf := make([]byte, n)
		_, err := io.ReadFull(r, buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf)
	}
	second := happening(trace.Added, "two", 2, "") + "\n"
	watch := get(songs+"?watch=true", "")
	want(t, "the watch", read(watch.Body, len(second)), second)
	log := get("/api/v1/namespaces/default/pods/p/log?follow=true", "")
	want(t, "the log", read(log.Body, 4), "Zun\n")
	echo := get("/api/v1/namespaces/default/pods/p/exec?command=echo", "echo")
	conn, ok := echo.Body.(io.ReadWriter)
	if !ok || echo.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(echo.Status)
	}
	if _, err := io.WriteString(conn, "Doko\n"); err != nil {
		t.Fatal(err)
	}
	want(t, "the connection", read(conn, 14), "you said Doko\n")
	b.injector.Die()
	for name, r := range map[string]io.Reader{"watch": watch.Body, "log": log.Body} {
		if n, _ := io.Copy(io.Discard, r); n != 0 {
			t.Errorf("the %s went on", name)
		}
	}
}
