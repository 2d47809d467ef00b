package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

// apiServer is a listener that stands for it.
func apiServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	greet(t, l, "API server")
	return l.Addr().String()
}

func TestNamesLeadToPods(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		one, two := openNode(t, p, 1), openNode(t, p, 2)
		h := openHub(t, p, HubOptions{APIServer: apiServer(t)})
		server, client := addPod(t, one), addPod(t, two).In("shop")
		greet(t, listen(t, server, 8080), "web")
		greet(t, listen(t, server, 80), "pod")
		f := newFeed(t, h)
		s := web("10.96.1.1")
		s.Spec.Ports[0].NodePort = 30080
		f.service(s)
		endpoint := ready(server.IP())
		endpoint.Hostname = new("web-0")
		f.slice(webSlice("a", 8080, endpoint))
		f.service(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alias"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.shop.svc.cluster.local"},
		})
		f.service(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "circle"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "circle.shop.svc.cluster.local"},
		})
		eventually(t, "all is known", func() bool {
			_, ok := h.table.Load().find(name{service: "circle", namespace: "shop"}, 80)
			return ok && h.table.Load().next(80, "") == server.IP()+":8080"
		})
		dashed := strings.ReplaceAll(server.IP(), ".", "-")
		for address, want := range map[string]string{
			"web.shop:80":                              "web",
			"web.shop.svc:80":                          "web",
			"web.shop.svc.cluster.local:80":            "web",
			"web.shop.svc.cluster.local.:80":           "web",
			"WEB.shop.svc:80":                          "web",
			"web.shop.svc:http":                        "web",
			"alias.shop.svc:80":                        "web",
			"10.96.1.1:80":                             "web",
			"[::ffff:10.96.1.1]:80":                    "web",
			"172.18.0.2:30080":                         "web",
			"node-1:30080":                             "web",
			"node-2:30080":                             "web",
			"web-0.web.shop.svc.cluster.local:80":      "pod",
			"web-0.web.shop.svc:8080":                  "web",
			dashed + ".shop.pod.cluster.local:80":      "pod",
			server.IP() + ":80":                        "pod",
			"kubernetes.default.svc:443":               "API server",
			"kubernetes.default.svc.cluster.local:443": "API server",
			"kubernetes.default:443":                   "API server",
			"10.96.0.1:443":                            "API server",
		} {
			for who, dial := range map[string]dialer{"hub": h.DialContext, "node": two.DialContext, "pod": client.DialContext} {
				if got := greeting(t, dial, address); got != want {
					t.Errorf("%s from the %s: %q, want %q", address, who, got, want)
				}
			}
		}
		for address, want := range map[string]string{"web:80": "web", "web-0.web:80": "pod", "kubernetes.default:443": "API server"} {
			if got := greeting(t, client.DialContext, address); got != want {
				t.Errorf("%s: %q, want %q", address, got, want)
			}
		}
		for address, want := range map[string]string{
			"web.shop.svc:81":                "connection refused: the Service has no port 81; it has 80",
			"10.96.1.1:81":                   "connection refused: the Service has no port 81; it has 80",
			"10.96.7.7:80":                   "connection refused: no Service has this address",
			"10.244.0.7:80":                  "connection refused: no pod has this address",
			"10.244.1.77:80":                 "connection refused: no pod has this address",
			"10.245.0.7:80":                  "no route to host: KWOK answers for the node: no program runs there",
			"10.246.0.7:10250":               "no route to host: KWOK answers for the node: no program runs there",
			"10.244.9.7:80":                  "no route to host: node-9 does not answer",
			"node-9:30081":                   "no route to host: node-9 does not answer",
			"none.shop.svc:80":               "no such host: there is no such Service",
			"none.shop.svc.cluster.local:80": "no such host: there is no such Service",
			"web-1.web.shop.svc:80":          "no such host: there is no such Service",
			"circle.shop.svc:80":             "no such host: external names lead in a circle",
			"kubernetes.default.svc:80":      "connection refused: the API server's Service has the port 443 only",
			"a b:80":                         "no such host: this is no name",
		} {
			for who, dial := range map[string]dialer{"hub": h.DialContext, "node": two.DialContext, "pod": client.DialContext} {
				err := refusal(t, dial, address)
				if got := Explain(err); got != "connect "+address+": "+want {
					t.Errorf("%s from the %s: %s", address, who, got)
				}
			}
		}
		err := refusal(t, client.DialContext, "none.shop.svc:80")
		if got := err.Error(); got != "dial tcp: lookup none.shop.svc on 10.96.0.10:53: no such host" {
			t.Errorf("got %q", got)
		}
		if dns, is := errors.AsType[*net.DNSError](err); !is || !dns.IsNotFound {
			t.Errorf("got %#v", err)
		}
	})
}

func TestServiceWithoutEndpoints(t *testing.T) {
	p := newPlan(t)
	n, h := openNode(t, p, 1), openHub(t, p, HubOptions{})
	f := newFeed(t, h)
	f.service(web("10.96.1.1"))
	headless := web(corev1.ClusterIPNone)
	headless.Name = "headless"
	f.service(headless)
	pod := addPod(t, n)
	eventually(t, "the Services are known", func() bool {
		_, ok := h.table.Load().find(name{service: "headless", namespace: "shop"}, 80)
		return ok && h.table.Load().next(80, "") == noEndpoints
	})
	for _, dial := range []dialer{h.DialContext, n.DialContext, pod.DialContext} {
		err := refusal(t, dial, "web.shop.svc:80")
		if got, want := err.Error(), "dial tcp 10.96.1.1:80: connect: connection refused"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := Explain(err), "connect web.shop.svc:80: connection refused: the Service has no ready endpoints"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := Explain(refusal(t, dial, "headless.shop.svc:80")); !strings.HasSuffix(got,
			"no such host: the headless Service has no ready endpoints") {
			t.Errorf("got %q", got)
		}
	}
}

// TestEndpointThatRefuses: the next one is not tried, but for headless Services, where that is the client's business.
func TestEndpointThatRefuses(t *testing.T) {
	p := newPlan(t)
	n, h := openNode(t, p, 1), openHub(t, p, HubOptions{})
	dead, alive := addPod(t, n), addPod(t, n)
	greet(t, listen(t, alive, 8080), "alive")
	f := newFeed(t, h)
	f.service(web("10.96.1.1"))
	f.slice(webSlice("a", 8080, ready(dead.IP()), ready(alive.IP())))
	eventually(t, "the endpoints are known", func() bool { return h.table.Load().next(80, "") == alive.IP()+":8080" })
	err := refusal(t, h.DialContext, "web.shop.svc:80")
	if want := "connect web.shop.svc:80: connection refused: nothing listens there"; Explain(err) != want {
		t.Errorf("got %q, want %q", Explain(err), want)
	}
	if got := greeting(t, h.DialContext, "web.shop.svc:80"); got != "alive" {
		t.Errorf("got %q", got)
	}
	f.service(web(corev1.ClusterIPNone))
	eventually(t, "it is headless", func() bool {
		found, _ := h.table.Load().find(name{service: "web", namespace: "shop"}, 80)
		return found.kind == isHosts
	})
	for range 4 {
		if got := greeting(t, h.DialContext, "web.shop.svc:8080"); got != "alive" {
			t.Errorf("got %q", got)
		}
	}
}

// TestConnectionsAreSpread in turn, and those of a client with affinity are not: the pod is known as itself.
func TestConnectionsAreSpread(t *testing.T) {
	p := newPlan(t)
	one, two, h := openNode(t, p, 1), openNode(t, p, 2), openHub(t, p, HubOptions{})
	var endpoints []discoveryv1.Endpoint
	for i, n := range []*Node{one, two, one, two} {
		pod := addPod(t, n)
		greet(t, listen(t, pod, 8080), fmt.Sprint(i))
		endpoints = append(endpoints, ready(pod.IP()))
	}
	f := newFeed(t, h)
	s := web("10.96.1.1")
	f.service(s)
	f.slice(webSlice("a", 8080, endpoints...))
	eventually(t, "the endpoints are known", func() bool { return h.table.Load().next(80, "") != noEndpoints })
	client := addPod(t, one)
	seen := map[string]int{}
	for range 40 {
		seen[greeting(t, client.DialContext, "web.shop.svc:80")]++
	}
	for i := range 4 {
		if seen[fmt.Sprint(i)] != 10 {
			t.Errorf("not in turn: %v", seen)
		}
	}
	s = s.DeepCopy()
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	f.service(s)
	eventually(t, "affinity is known", func() bool {
		h.table.Load().mu.Lock()
		defer h.table.Load().mu.Unlock()
		return h.table.Load().services[key{"shop", "web"}].affinity() > 0
	})
	for _, pod := range []*Pod{client, addPod(t, two)} {
		first := greeting(t, pod.DialContext, "web.shop.svc:80")
		for range 8 {
			if got := greeting(t, pod.DialContext, "web.shop.svc:80"); got != first {
				t.Errorf("%s got %s, was %s", pod.IP(), got, first)
			}
		}
	}
}

func TestWatchAgain(t *testing.T) {
	p := newPlan(t)
	n, h := openNode(t, p, 1), openHub(t, p, HubOptions{})
	pod := addPod(t, n)
	greet(t, listen(t, pod, 8080), "web")
	first := newFeed(t, h)
	first.service(web("10.96.1.1"))
	eventually(t, "the Service is known", func() bool { return h.table.Load().next(80, "") == noEndpoints })
	err := h.follow(t.Context(), fake.NewClientset(web("10.96.1.2"), webSlice("a", 8080, ready(pod.IP()))))
	if err != nil {
		t.Fatal(err)
	}
	// All is known at once, and nothing from before.
	if got := greeting(t, h.DialContext, "10.96.1.2:80"); got != "web" {
		t.Errorf("got %q", got)
	}
	if got := Explain(refusal(t, h.DialContext, "10.96.1.1:80")); !strings.HasSuffix(got, "no Service has this address") {
		t.Errorf("got %q", got)
	}
	// A watch that never knows anything changes nothing.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := h.Watch(ctx, &rest.Config{Host: "http://127.0.0.1:1"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if got := greeting(t, h.DialContext, "10.96.1.2:80"); got != "web" {
		t.Errorf("got %q", got)
	}
	mustClose(t, h)
	if err := h.follow(t.Context(), fake.NewClientset()); err == nil {
		t.Error("a closed hub watches")
	}
}

func TestPortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, l)
	p := newPlan(t)
	_, err = OpenHub(p, HubOptions{ProxyPort: l.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, ErrPortTaken) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(p.Dir); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
	openHub(t, p, HubOptions{})
	if _, err := OpenHub(p, HubOptions{}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second hub: %v", err)
	}
}

func TestCloseOfHub(t *testing.T) {
	p := newPlan(t)
	n, h := openNode(t, p, 1), openHub(t, p, HubOptions{})
	pod := addPod(t, n)
	greet(t, listen(t, pod, 80), "hello")
	own, err := h.DialContext(t.Context(), "tcp", pod.IP()+":80")
	if err != nil {
		t.Fatal(err)
	}
	through, err := pod.DialContext(t.Context(), "tcp", "10-244-1-2.shop.pod:80")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{own, through} {
		if _, err := c.Read(make([]byte, len("hello\n"))); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, h)
	mustClose(t, h)
	for _, c := range []net.Conn{own, through} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection outlives the hub")
		}
		mustClose(t, c)
	}
	if _, err := h.DialContext(t.Context(), "tcp", pod.IP()+":80"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it connects: %v", err)
	}
	if err := refusal(t, n.DialContext, "web.shop.svc:80"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("got %v", err)
	}
	if got := pod.Proxy(); got != "" {
		t.Errorf("there is a proxy: %s", got)
	}
}
