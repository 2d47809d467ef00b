package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// patience is for what never takes that long.
const patience = 30 * time.Second

// modes runs a test with addresses of its own, and with 127.0.0.1 only.
func modes(t *testing.T, test func(t *testing.T, p Plan)) {
	t.Helper()
	t.Run("addresses", func(t *testing.T) { test(t, mappedPlan(t)) })
	t.Run("ports", func(t *testing.T) { test(t, newPlan(t)) })
}

// newPlan is one with 127.0.0.1 only. When the test ends, no goroutine may be left.
func newPlan(tb testing.TB) Plan {
	tb.Helper()
	dir, err := os.MkdirTemp("", "net") //nolint:usetesting // TempDir's path is too long for sockets on some systems
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if _, is := tb.(*testing.T); !is {
		return Plan{Dir: dir} // fuzzing has goroutines of its own
	}
	before := runtime.NumGoroutine()
	tb.Cleanup(func() {
		if waitFor(func() bool { return runtime.NumGoroutine() <= before }) {
			return
		}
		text := &strings.Builder{}
		_ = pprof.Lookup("goroutine").WriteTo(text, 1)
		tb.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, text)
	})
	return Plan{Dir: dir}
}

// mappedPlan is one with addresses of its own, where there are such.
func mappedPlan(tb testing.TB) Plan {
	tb.Helper()
	k, release, err := ClaimLoopback(0, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if k == 0 {
		tb.Skip("this system has 127.0.0.1 only")
	}
	tb.Cleanup(release)
	p := newPlan(tb)
	p.Loopback = k
	return p
}

func waitFor(condition func() bool) bool {
	for end := time.Now().Add(patience); !condition(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !waitFor(condition) {
		t.Fatalf("never happened: %s", what)
	}
}

func openNode(tb testing.TB, p Plan, number int) *Node {
	tb.Helper()
	n, err := OpenNode(p, number)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { mustClose(tb, n) })
	return n
}

func openHub(tb testing.TB, p Plan, o HubOptions) *Hub {
	tb.Helper()
	h, err := OpenHub(p, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { mustClose(tb, h) })
	return h
}

func mustClose(tb testing.TB, c io.Closer) {
	tb.Helper()
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		tb.Errorf("close: %v", err)
	}
}

// addPod takes an address.
func addPod(tb testing.TB, n *Node) *Pod {
	tb.Helper()
	ip, err := n.Add()
	if err != nil {
		tb.Fatal(err)
	}
	return n.Pod(ip)
}

func listen(tb testing.TB, p *Pod, port int) net.Listener {
	tb.Helper()
	l, err := p.Listen(port)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// greet says the text to everybody who connects, and then sends back what comes, until the listener is closed.
func greet(tb testing.TB, l net.Listener, text string) {
	tb.Helper()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if _, err := io.WriteString(c, text+"\n"); err == nil {
					_, _ = io.Copy(c, c)
				}
			}()
		}
	}()
}

// serveHTTP serves until the listener is closed and its connections are cut.
func serveHTTP(tb testing.TB, l net.Listener, handle http.HandlerFunc) {
	tb.Helper()
	server := &http.Server{Handler: handle, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(l) }()
	tb.Cleanup(func() { _ = server.Close() })
}

// answering is a pod that answers each request with a text.
func answering(tb testing.TB, n *Node, port int, text string) *Pod {
	tb.Helper()
	p := addPod(tb, n)
	serveHTTP(tb, listen(tb, p, port), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	return p
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// greeting connects and returns the server's greeting.
func greeting(t *testing.T, dial dialer, address string) string {
	t.Helper()
	c, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("%v (%s)", err, Explain(err))
	}
	defer func() { _ = c.Close() }()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// refusal is why a connection is not made.
func refusal(t *testing.T, dial dialer, address string) error {
	t.Helper()
	c, err := dial(t.Context(), "tcp", address)
	if err == nil {
		_ = c.Close()
		t.Fatalf("%s: connected", address)
	}
	return err
}

// feed is a fake client of an API server.
type feed struct {
	kubernetes.Interface

	t testing.TB
}

func newFeed(tb testing.TB, h *Hub) feed {
	tb.Helper()
	api := fake.NewClientset()
	// A watch of the fake begins with the very objects that it keeps, if there are any: there must be none yet.
	watched := make(chan struct{}, 2)
	api.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := api.Tracker().Watch(action.GetResource(), action.GetNamespace(), action.(clienttesting.WatchActionImpl).ListOptions)
		select {
		case watched <- struct{}{}:
		default:
		}
		return true, w, err
	})
	f := feed{api, tb}
	if err := h.follow(tb.Context(), f.Interface); err != nil {
		tb.Fatal(err)
	}
	for range cap(watched) { // Services and EndpointSlices
		<-watched
	}
	return f
}

func (f feed) service(s *corev1.Service) {
	f.t.Helper()
	api := f.CoreV1().Services(s.Namespace)
	_, err := api.Update(f.t.Context(), s, metav1.UpdateOptions{})
	if err != nil {
		_, err = api.Create(f.t.Context(), s, metav1.CreateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f feed) slice(s *discoveryv1.EndpointSlice) {
	f.t.Helper()
	api := f.DiscoveryV1().EndpointSlices(s.Namespace)
	_, err := api.Update(f.t.Context(), s, metav1.UpdateOptions{})
	if err != nil {
		_, err = api.Create(f.t.Context(), s, metav1.CreateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// web is a Service with one port, 80.
func web(ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip},
			Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	}
}

// webSlice has a port without a name.
func webSlice(name string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(port)}},
		Endpoints:   endpoints,
	}
}

func ready(ip string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{ip},
		Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
	}
}

func notReady(ip string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{ip},
		Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(false)},
	}
}

func ending(ip string, serving bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{ip},
		Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(serving), Terminating: new(true)},
	}
}
