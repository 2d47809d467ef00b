package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestPodsReachEachOther(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		one, two := openNode(t, p, 1), openNode(t, p, 2)
		server, near, far := addPod(t, one), addPod(t, one), addPod(t, two)
		l := listen(t, server, 8080)
		if got, want := l.Addr().String(), server.IP()+":8080"; got != want {
			t.Errorf("listens at %s, want %s", got, want)
		}
		greet(t, l, "hello")
		address := net.JoinHostPort(server.IP(), "8080")
		for who, dial := range map[string]dialer{
			"itself": server.DialContext, "its neighbour": near.DialContext, "another node's pod": far.DialContext,
			"its node": one.DialContext, "another node": two.DialContext,
		} {
			if got := greeting(t, dial, address); got != "hello" {
				t.Errorf("%s: %q", who, got)
			}
		}
		if got := greeting(t, server.DialContext, "localhost:8080"); got != "hello" {
			t.Errorf("its own localhost: %q", got)
		}
		err := refusal(t, near.DialContext, "localhost:8080")
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("its neighbour's localhost: %v", err)
		}
	})
}

func TestAddressesOfConnections(t *testing.T) {
	p := mappedPlan(t)
	one, two := openNode(t, p, 1), openNode(t, p, 2)
	server, client := addPod(t, one), addPod(t, two)
	l := listen(t, server, 8080)
	for _, test := range []struct {
		dial dialer
		ip   string
	}{{client.DialContext, client.IP()}, {server.DialContext, server.IP()}, {two.DialContext, two.IP()}} {
		c, err := test.dial(t.Context(), "tcp", server.IP()+":8080")
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.RemoteAddr().String(); got != server.IP()+":8080" {
			t.Errorf("connected to %s", got)
		}
		if got := accepted.LocalAddr().String(); got != server.IP()+":8080" {
			t.Errorf("accepted at %s", got)
		}
		for what, a := range map[string]net.Addr{"dialled": c.LocalAddr(), "accepted": accepted.RemoteAddr()} {
			if got := a.(*net.TCPAddr).IP.String(); got != test.ip {
				t.Errorf("%s from %s, want %s", what, got, test.ip)
			}
		}
		mustClose(t, c)
		mustClose(t, accepted)
	}
}

func TestRefused(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		one := openNode(t, p, 1)
		here, there := addPod(t, one), addPod(t, openNode(t, p, 2))
		for _, dial := range []dialer{here.DialContext, there.DialContext, one.DialContext} {
			err := refusal(t, dial, here.IP()+":8080")
			want := "dial tcp " + here.IP() + ":8080: connect: connection refused"
			if !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
			if got := Explain(err); got != "connect "+here.IP()+":8080: connection refused: nothing listens there" {
				t.Errorf("explained: %s", got)
			}
		}
	})
}

func TestNodeWithoutPower(t *testing.T) {
	p := newPlan(t)
	one, two := openNode(t, p, 1), openNode(t, p, 2)
	pod := addPod(t, two)
	greet(t, listen(t, pod, 8080), "hello")
	mustClose(t, two)
	err := refusal(t, one.DialContext, pod.IP()+":8080")
	if !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("got %v", err)
	}
	if got, want := Explain(err), "connect 10.244.2.2:8080: no route to host: node-2 does not answer"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSocketOfDeadNode(t *testing.T) {
	p := newPlan(t)
	l, err := net.Listen("unix", p.NodeSocket(1))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	mustClose(t, l)
	n := openNode(t, p, 1)
	if _, err := OpenNode(p, 1); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second node 1: %v", err)
	}
	pod := addPod(t, n)
	greet(t, listen(t, pod, 80), "alive")
	if got := greeting(t, openNode(t, p, 2).DialContext, pod.IP()+":80"); got != "alive" {
		t.Errorf("got %q", got)
	}
}

func TestAddressesAreNotGivenAgainAtOnce(t *testing.T) {
	p := newPlan(t)
	n := openNode(t, p, 1)
	first := addPod(t, n).IP()
	if first != "10.244.1.2" {
		t.Errorf("the first pod has %s", first)
	}
	n.Remove(first)
	if second := addPod(t, n).IP(); second != "10.244.1.3" {
		t.Errorf("the second pod has %s", second)
	}
	mustClose(t, n)
	n = openNode(t, p, 1) // it was switched off and on
	seen := map[string]bool{}
	for i := range lastPod - firstPod + 1 {
		ip := addPod(t, n).IP()
		if i == 0 && ip != "10.244.1.4" {
			t.Errorf("the third pod has %s", ip)
		}
		seen[ip] = true
	}
	if len(seen) != 253 {
		t.Errorf("%d addresses", len(seen))
	}
	if _, err := n.Add(); !errors.Is(err, ErrNoAddress) {
		t.Errorf("one more: %v", err)
	}
	n.Remove("10.244.1.99")
	if ip, err := n.Add(); ip != "10.244.1.99" || err != nil {
		t.Errorf("got %s, %v", ip, err)
	}
}

func TestRemoveCutsEverything(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		one, two := openNode(t, p, 1), openNode(t, p, 2)
		pod, other := addPod(t, one), addPod(t, two)
		l, others := listen(t, pod, 8080), listen(t, other, 8080)
		greet(t, l, "hello")
		greet(t, others, "hello")
		process := hostProcess(t, pod, 9090)
		conns := map[string]net.Conn{}
		for name, by := range map[string]struct {
			dial    dialer
			address string
		}{
			"from its own node": {one.DialContext, pod.IP() + ":8080"},
			"from another pod":  {other.DialContext, pod.IP() + ":8080"},
			"to another pod":    {pod.DialContext, other.IP() + ":8080"},
			"to a process":      {other.DialContext, pod.IP() + ":9090"},
			"near, to process":  {one.DialContext, pod.IP() + ":9090"},
		} {
			c, err := by.dial(t.Context(), "tcp", by.address)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			conns[name] = c
			if line, err := bufio.NewReader(c).ReadString('\n'); line != "hello\n" {
				t.Fatalf("%s: %q, %v", name, line, err)
			}
		}
		one.Remove(pod.IP())
		for name, c := range conns {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("%s: the connection goes on", name)
			}
			mustClose(t, c)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener: %v", err)
		}
		for _, dial := range []dialer{one.DialContext, other.DialContext} {
			for _, port := range []string{"8080", "9090"} {
				if err := refusal(t, dial, pod.IP()+":"+port); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("after its end: %v", err)
				}
			}
		}
		if _, err := pod.Listen(80); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("it listens again: %v", err)
		}
		if _, _, err := pod.HostAddress(80); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("it has an address again: %v", err)
		}
		if err := refusal(t, pod.DialContext, other.IP()+":8080"); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("it connects: %v", err)
		}
		one.Remove(pod.IP()) // again
		mustClose(t, process)
	})
}

// hostProcess listens as a process would that is not in this one.
func hostProcess(t *testing.T, p *Pod, port int) net.Listener {
	t.Helper()
	host, hostPort, err := p.HostAddress(port)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, hostPort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	greet(t, l, "hello")
	return l
}

func TestHostAddress(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		n := openNode(t, p, 1)
		a, b := addPod(t, n), addPod(t, n)
		seen := map[string]bool{}
		for _, pod := range []*Pod{a, b} {
			for _, port := range []int{8080, 8081} {
				host, hostPort, err := pod.HostAddress(port)
				if err != nil {
					t.Fatal(err)
				}
				if want, ok := p.Host(pod.IP()); ok && (host != want || hostPort != port) {
					t.Errorf("%s:%d is at %s:%d", pod.IP(), port, host, hostPort)
				}
				again, againPort, err := n.Pod(pod.IP()).HostAddress(port)
				if err != nil || again != host || againPort != hostPort {
					t.Errorf("it was %s:%d, and is %s:%d: %v", host, hostPort, again, againPort, err)
				}
				seen[fmt.Sprint(host, hostPort)] = true
			}
		}
		if len(seen) != 4 {
			t.Errorf("some are the same: %v", seen)
		}
		process := hostProcess(t, a, 8080)
		if got := greeting(t, b.DialContext, a.IP()+":8080"); got != "hello" {
			t.Errorf("got %q", got)
		}
		mustClose(t, process)
		if err := refusal(t, b.DialContext, a.IP()+":8080"); err.Error() !=
			"dial tcp "+a.IP()+":8080: connect: connection refused" {
			t.Errorf("after the process: %v", err)
		}
	})
}

// TestForeignListener is about a program of the user, not of the lab, that listens on all addresses of the machine.
func TestForeignListener(t *testing.T) {
	p := mappedPlan(t)
	n := openNode(t, p, 1)
	pod := addPod(t, n)
	for _, network := range []string{"tcp4", "tcp"} {
		t.Run(network, func(t *testing.T) {
			l, err := net.Listen(network, ":0")
			if err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, l)
			greet(t, l, "foreign")
			port := l.Addr().(*net.TCPAddr).Port
			address := fmt.Sprintf("%s:%d", pod.IP(), port)
			if err := refusal(t, n.DialContext, address); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("the pod is taken for the machine: %v", err)
			}
			host, hostPort, err := pod.HostAddress(port)
			if err != nil {
				t.Fatal(err)
			}
			if mapped, _ := p.Host(pod.IP()); host != mapped || hostPort == port {
				t.Errorf("a process of the pod is to listen at %s:%d, which is taken", host, hostPort)
			}
			greet(t, listen(t, pod, port), "pod")
			if got := greeting(t, n.DialContext, address); got != "pod" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestProcessThatDoesNotAsk listens at the pod's address by itself.
func TestProcessThatDoesNotAsk(t *testing.T) {
	p := mappedPlan(t)
	n := openNode(t, p, 1)
	pod := addPod(t, n)
	host, _ := p.Host(pod.IP())
	for _, address := range []string{host + ":0", "[::ffff:" + host + "]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		greet(t, l, "hello")
		port := l.Addr().(*net.TCPAddr).Port
		if got := greeting(t, n.DialContext, fmt.Sprintf("%s:%d", pod.IP(), port)); got != "hello" {
			t.Errorf("got %q", got)
		}
		// Such an address may be what it tells others.
		if got := greeting(t, addPod(t, n).DialContext, fmt.Sprintf("%s:%d", host, port)); got != "hello" {
			t.Errorf("got %q", got)
		}
		if _, err := pod.Listen(port); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("the port is used twice: %v", err)
		}
		mustClose(t, l)
	}
}

func TestListen(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		n := openNode(t, p, 1)
		a, b := addPod(t, n), addPod(t, n)
		l := listen(t, a, 80) // privileged, perhaps
		greet(t, l, "a")
		greet(t, listen(t, b, 80), "b") // another pod has the port too
		if got := greeting(t, b.DialContext, a.IP()+":80"); got != "a" {
			t.Errorf("got %q", got)
		}
		if got := greeting(t, a.DialContext, b.IP()+":80"); got != "b" {
			t.Errorf("got %q", got)
		}
		_, err := n.Pod(a.IP()).Listen(80)
		if want := "listen tcp " + a.IP() + ":80: bind: address already in use"; err == nil || err.Error() != want ||
			!errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("got %v, want %s", err, want)
		}
		mustClose(t, l)
		greet(t, listen(t, a, 80), "again")
		if got := greeting(t, b.DialContext, a.IP()+":80"); got != "again" {
			t.Errorf("got %q", got)
		}
		chosen := listen(t, a, 0)
		greet(t, chosen, "any")
		if got := greeting(t, b.DialContext, chosen.Addr().String()); got != "any" {
			t.Errorf("got %q", got)
		}
		if _, err := a.Listen(70000); err == nil {
			t.Error("there is a port 70000")
		}
	})
}

func TestServe(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		one, two := openNode(t, p, 1), openNode(t, p, 2)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer mustClose(t, l)
		greet(t, l, "kubelet")
		takeBack, err := one.Serve(one.IP(), 10250, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Serve(one.IP(), 10250, "127.0.0.1:1"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("once more: %v", err)
		}
		for _, dial := range []dialer{one.DialContext, two.DialContext, addPod(t, two).DialContext} {
			if got := greeting(t, dial, "172.18.0.2:10250"); got != "kubelet" {
				t.Errorf("got %q", got)
			}
		}
		takeBack()
		if err := refusal(t, two.DialContext, "172.18.0.2:10250"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
		if _, err := one.Serve("10.244.1.77", 80, l.Addr().String()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("of no pod: %v", err)
		}
		if err := refusal(t, two.DialContext, "10.244.1.77:80"); !strings.Contains(Explain(err), "no pod has this address") {
			t.Errorf("got %v", err)
		}
	})
}

func TestHalfClose(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		one, two := openNode(t, p, 1), openNode(t, p, 2)
		server, client := addPod(t, one), addPod(t, two)
		l := listen(t, server, 8080)
		go func() { // answers when everything was said
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			if text, err := io.ReadAll(c); err == nil {
				_, _ = io.WriteString(c, strings.ToUpper(string(text)))
			}
		}()
		c, err := client.DialContext(t.Context(), "tcp", server.IP()+":8080")
		if err != nil {
			t.Fatal(err)
		}
		defer mustClose(t, c)
		text := strings.Repeat("question ", 100_000)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if err := c.(duplex).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || string(answer) != strings.ToUpper(text) {
			t.Errorf("got %d bytes: %v", len(answer), err)
		}
	})
}

func TestDialIsCancelled(t *testing.T) {
	p := newPlan(t)
	one := openNode(t, p, 1)
	// A node that hangs.
	l, err := net.Listen("unix", p.NodeSocket(2))
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = bufio.NewReader(c).ReadString('\n')
			cancel()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	_, err = one.DialContext(ctx, "tcp", "10.244.2.2:80")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 1)
	defer cancel()
	_, err = one.DialContext(ctx, "tcp", "10.244.2.2:80")
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestUDPIsRefused(t *testing.T) {
	n := openNode(t, newPlan(t), 1)
	if _, err := n.DialContext(t.Context(), "udp", "10.244.1.2:53"); !errors.Is(err, net.UnknownNetworkError("udp")) {
		t.Errorf("got %v", err)
	}
}

func TestNodeDialsOutside(t *testing.T) {
	n := openNode(t, newPlan(t), 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, l)
	greet(t, l, "outside")
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if got := greeting(t, n.DialContext, fmt.Sprintf("%s:%d", host, port)); got != "outside" {
			t.Errorf("got %q", got)
		}
	}
	// Without a hub, nobody knows the names.
	if err := refusal(t, n.DialContext, "web.shop.svc:80"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("got %v", err)
	}
}
