package network

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// benchCluster is a pod behind a Service.
func benchCluster(b *testing.B) (*cluster, *Pod) {
	b.Helper()
	c := newCluster(b, mappedPlan(b))
	pod := addPod(b, c.node)
	greet(b, listen(b, pod, 8080), "hello")
	c.route(b, pod)
	return c, pod
}

// BenchmarkDial connects, waits for the first line, and closes.
func BenchmarkDial(b *testing.B) {
	c, pod := benchCluster(b)
	host, _ := c.plan.Host(pod.IP())
	other := openNode(b, c.plan, 2)
	client := addPod(b, other)
	for _, way := range []struct {
		name    string
		dial    dialer
		address string
	}{
		{"direct", (&net.Dialer{}).DialContext, host + ":8080"},
		{"node-own-pod", c.node.DialContext, pod.IP() + ":8080"},
		{"node-other-pod", other.DialContext, pod.IP() + ":8080"},
		{"hub-service", c.Hub.DialContext, "web.shop.svc:80"},
		{"pod-hub-service", client.DialContext, "web.shop.svc:80"},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				conn, err := way.dial(b.Context(), "tcp", way.address)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := bufio.NewReaderSize(conn, 64).ReadString('\n'); err != nil {
					b.Fatal(err)
				}
				_ = conn.Close()
			}
		})
	}
}

// BenchmarkThroughput sends 1 MiB there and back over one connection.
func BenchmarkThroughput(b *testing.B) {
	c, pod := benchCluster(b)
	host, _ := c.plan.Host(pod.IP())
	for _, way := range []struct {
		name    string
		dial    dialer
		address string
	}{
		{"direct", (&net.Dialer{}).DialContext, host + ":8080"},
		{"hub-service", c.Hub.DialContext, "web.shop.svc:80"},
	} {
		b.Run(way.name, func(b *testing.B) {
			conn, err := way.dial(b.Context(), "tcp", way.address)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := io.ReadFull(conn, make([]byte, len("hello\n"))); err != nil {
				b.Fatal(err)
			}
			out, in := make([]byte, 1<<20), make([]byte, 1<<20)
			b.SetBytes(2 << 20)
			for b.Loop() {
				go func() { _, _ = conn.Write(out) }()
				if _, err := io.ReadFull(conn, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFlip is the time from the event of a changed slice until a connection goes to the other pod, with 200 pods
// and 50 other Services.
func BenchmarkFlip(b *testing.B) {
	p := mappedPlan(b)
	h, n := openHub(b, p, HubOptions{}), openNode(b, p, 1)
	api := fake.NewClientset(web("10.96.1.1"))
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
	api.PrependWatchReactor("endpointslices", clienttesting.DefaultWatchReactor(events, nil))
	for i := range 50 {
		s := web(fmt.Sprintf("10.96.2.%d", i+1))
		s.Name = fmt.Sprintf("other-%d", i)
		if _, err := api.CoreV1().Services("shop").Create(b.Context(), s, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	if err := h.follow(b.Context(), api); err != nil {
		b.Fatal(err)
	}
	var pods [2]*discoveryv1.EndpointSlice
	for half := range pods {
		pods[half] = webSlice("a", 8080)
		for range 100 {
			pod := addPod(b, n)
			greet(b, listen(b, pod, 8080), fmt.Sprint(half))
			pods[half].Endpoints = append(pods[half].Endpoints, ready(pod.IP()))
		}
	}
	events.Add(pods[1])
	said := func() string {
		conn, err := h.DialContext(b.Context(), "tcp", "web.shop.svc:80")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = conn.Close() }()
		line, _ := bufio.NewReaderSize(conn, 64).ReadString('\n')
		return line
	}
	waitFor(func() bool { return said() == "1\n" })
	flips, missed := 0, 0
	began := time.Now()
	for b.Loop() {
		slice := pods[flips%2].DeepCopy()
		slice.ResourceVersion = fmt.Sprint(flips + 10)
		events.Modify(slice)
		for said() != fmt.Sprintf("%d\n", flips%2) {
			missed++
		}
		flips++
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/float64(max(flips, 1)), "µs/flip")
	b.ReportMetric(float64(missed)/float64(max(flips, 1)), "old-answers/flip")
}
