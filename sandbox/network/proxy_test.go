package network

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// through is a client that uses a proxy, as curl -x does.
func through(t *testing.T, proxy string) *http.Client {
	t.Helper()
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get returns the status and the body.
func get(t *testing.T, c *http.Client, target string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, c, req)
}

func do(t *testing.T, c *http.Client, req *http.Request) string {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(body)))
}

// cluster is one node, a hub, and a Service "web" of whatever pod is named.
type cluster struct {
	*Hub
	feed

	node *Node
}

func newCluster(tb testing.TB, p Plan) *cluster {
	tb.Helper()
	c := &cluster{node: openNode(tb, p, 1), Hub: openHub(tb, p, HubOptions{})}
	c.feed = newFeed(tb, c.Hub)
	c.service(web("10.96.1.1"))
	c.route(tb)
	return c
}

// route makes the Service lead to the pods, and waits until it does.
func (c *cluster) route(tb testing.TB, pods ...*Pod) {
	tb.Helper()
	slice := webSlice("a", 8080)
	want := noEndpoints
	for _, pod := range pods {
		slice.Endpoints = append(slice.Endpoints, ready(pod.IP()))
		want = pod.IP() + ":8080"
	}
	c.slice(slice)
	if !waitFor(func() bool { return c.Hub.table.Load().next(80, "") == want }) {
		tb.Fatalf("the Service never led to %s", want)
	}
}

func TestProxyForwards(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		c := newCluster(t, p)
		pod := addPod(t, c.node)
		serveHTTP(t, listen(t, pod, 8080), func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s host=%s for=%s agent=%s auth=%s%s connection=%s body=%s", r.Method, r.RequestURI, r.Host,
				r.Header.Get("X-Forwarded-For"), r.UserAgent(), r.Header.Get("Proxy-Authorization"),
				r.Header.Get("Authorization"), r.Header.Get("Connection"), body)
		})
		c.route(t, pod)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://web.shop.svc/a%2Fb?x=%zz;y=1",
			strings.NewReader("question"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Forwarded-For": {"192.0.2.1"}, "User-Agent": {"me"}, "Authorization": {"mine"}}
		got := do(t, through(t, c.ProxyURL()), req)
		want := "418 PUT /a%2Fb?x=%zz;y=1 host=web.shop.svc for=192.0.2.1 agent=me auth=mine connection=close body=question"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestFlipIsSeenByNextRequest although the client keeps its connection to the proxy.
func TestFlipIsSeenByNextRequest(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		c := newCluster(t, p)
		client := through(t, c.ProxyURL())
		pods := []*Pod{answering(t, c.node, 8080, "0"), answering(t, c.node, 8080, "1")}
		for i := range 20 {
			c.route(t, pods[i%2])
			if got, want := get(t, client, "http://web.shop/"), fmt.Sprintf("200 %d", i%2); got != want {
				t.Fatalf("flip %d: %s, want %s", i, got, want)
			}
		}
	})
}

func TestProxyExplains(t *testing.T) {
	p := newPlan(t)
	c := newCluster(t, p)
	client := through(t, c.ProxyURL())
	want := "connect web.shop.svc:80: connection refused: the Service has no ready endpoints"
	if got := get(t, client, "http://web.shop.svc/"); got != "502 "+want {
		t.Errorf("got %s", got)
	}
	// When CONNECT fails, the status line is what clients show.
	_, err := client.Get("https://web.shop.svc:80/")
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	pod := addPod(t, c.node)
	c.route(t, pod)
	if got := get(t, client, "http://web.shop.svc/"); got != "502 connect web.shop.svc:80: connection refused: nothing listens there" {
		t.Errorf("got %s", got)
	}
	if got := get(t, client, "http://none.shop.svc/"); got != "502 connect none.shop.svc:80: no such host: there is no such Service" {
		t.Errorf("got %s", got)
	}
}

func TestProxyWantsPassword(t *testing.T) {
	p := newPlan(t)
	c := newCluster(t, p)
	c.route(t, answering(t, c.node, 8080, "web"))
	host := c.proxy.String()
	password, _ := mustParse(t, c.ProxyURL()).User.Password()
	for user, want := range map[string]string{
		"":                                 "407",
		"lab:":                             "407",
		"lab:x" + password:                 "407",
		"other:" + password:                "407",
		"shop.192.0.2.1:" + password:       "407",
		"shop.172.18.0.1:" + password:      "407",
		"a b.10.244.1.2:" + password:       "407",
		"lab:" + password:                  "200",
		"shop.172.18.0.2:" + password:      "200",
		"shop.10.244.1.2:" + password:      "200",
		"lab:" + strings.ToUpper(password): "407",
	} {
		proxy := &url.URL{Scheme: "http", Host: host}
		if name, secret, ok := strings.Cut(user, ":"); ok {
			proxy.User = url.UserPassword(name, secret)
		}
		client := through(t, proxy.String())
		if got, _, _ := strings.Cut(get(t, client, "http://web.shop.svc/"), " "); got != want {
			t.Errorf("%q: %s, want %s", user, got, want)
		}
		_, err := client.Get("https://none.shop.svc/")
		if got := err.Error(); strings.Contains(got, "Proxy Authentication Required") != (want == "407") {
			t.Errorf("%q: CONNECT: %s", user, got)
		}
	}
	if h := openHub(t, newPlan(t), HubOptions{}); h.options.Password == password || len(password) < 20 {
		t.Error("passwords are not random")
	}
	if h := openHub(t, newPlan(t), HubOptions{Password: "p:w"}); !strings.HasPrefix(h.ProxyURL(), "http://lab:p%3Aw@127.0.0.1:") {
		t.Errorf("got %s", h.ProxyURL())
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestProxyIsNoWebServer(t *testing.T) {
	h := openHub(t, newPlan(t), HubOptions{})
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if got := get(t, direct, "http://"+h.proxy.String()+"/"); !strings.HasPrefix(got, "400 this is the proxy into the cluster's network") ||
		!strings.Contains(got, "curl -x http://lab:PASSWORD@"+h.proxy.String()) {
		t.Errorf("got %s", got)
	}
	c, err := net.Dial("unix", h.plan.HubSocket())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, c)
	fmt.Fprint(c, "GET ftp://web.shop.svc/ HTTP/1.1\r\nHost: web.shop.svc\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || !strings.Contains(string(answer), "forwards http:// only") {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestProxyStreams(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		c := newCluster(t, p)
		pod := addPod(t, c.node)
		more := make(chan struct{})
		serveHTTP(t, listen(t, pod, 8080), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
				<-more // nothing is sent before the first was read
			}
		})
		c.route(t, pod)
		resp, err := through(t, c.ProxyURL()).Get("http://web.shop.svc/")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			line, err := lines.ReadString('\n')
			if err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("got %q, %v", line, err)
			}
			_, _ = lines.ReadString('\n')
			more <- struct{}{}
		}
	})
}

// upgrading is a pod that stops speaking HTTP when asked to.
func upgrading(t *testing.T, c *cluster) *Pod {
	t.Helper()
	pod := addPod(t, c.node)
	serveHTTP(t, listen(t, pod, 8080), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "echo" {
			http.Error(w, "not for this", http.StatusBadRequest)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
	})
	return pod
}

func TestProxyUpgrades(t *testing.T) {
	modes(t, func(t *testing.T, p Plan) {
		c := newCluster(t, p)
		c.route(t, upgrading(t, c))
		user := mustParse(t, c.ProxyURL()).User
		password, _ := user.Password()
		auth := http.Request{Header: http.Header{}}
		auth.SetBasicAuth(user.Username(), password)
		proxyAuth := "Proxy-Authorization: " + auth.Header.Get("Authorization") + "\r\n"
		upgrade := "Host: web.shop.svc\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"
		for name, says := range map[string][]string{
			"forward": {"GET http://web.shop.svc/ HTTP/1.1\r\n" + upgrade + proxyAuth + "\r\n"},
			"connect": {
				"CONNECT web.shop.svc:80 HTTP/1.1\r\nHost: web.shop.svc:80\r\n" + proxyAuth + "\r\n",
				"GET / HTTP/1.1\r\n" + upgrade + "\r\n",
			},
			"connect, without waiting": {
				"CONNECT web.shop.svc:80 HTTP/1.1\r\nHost: web.shop.svc:80\r\n" + proxyAuth + "\r\nGET / HTTP/1.1\r\n" + upgrade + "\r\n",
				"",
			},
		} {
			conn, err := net.Dial("tcp", c.proxy.String())
			if err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(conn)
			for i, text := range says {
				if _, err := io.WriteString(conn, text); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				want := http.StatusOK
				if i == len(says)-1 {
					want = http.StatusSwitchingProtocols
				}
				if resp.StatusCode != want {
					t.Fatalf("%s: %s, want %d", name, resp.Status, want)
				}
			}
			for _, word := range []string{"one\n", "two\n"} {
				if _, err := io.WriteString(conn, word); err != nil {
					t.Fatal(err)
				}
				if line, err := reader.ReadString('\n'); line != word {
					t.Errorf("%s: got %q, want %q: %v", name, line, word, err)
				}
			}
			mustClose(t, conn)
		}
	})
}

// TestProxyOfPod uses the proxy as a process of a pod does.
func TestProxyOfPod(t *testing.T) {
	p := newPlan(t)
	c := newCluster(t, p)
	pods := []*Pod{answering(t, c.node, 8080, "0"), answering(t, c.node, 8080, "1")}
	c.route(t, pods...)
	s := web("10.96.1.1")
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	c.service(s)
	asker := answering(t, c.node, 9090, "myself").In("shop")
	eventually(t, "affinity is known", func() bool {
		found, _ := c.Hub.table.Load().find(name{service: "web", namespace: "shop"}, 80)
		c.Hub.table.Load().mu.Lock()
		defer c.Hub.table.Load().mu.Unlock()
		return c.Hub.table.Load().services[found.key].affinity() > 0
	})
	client := through(t, asker.Proxy())
	first := get(t, client, "http://web/") // in its namespace
	for range 5 {
		if got := get(t, client, "http://web/"); got != first || !strings.HasPrefix(got, "200 ") {
			t.Errorf("got %s, was %s", got, first)
		}
	}
	// A client is never asked to use a proxy for localhost, but may do so.
	resp := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "http://localhost:9090/", nil)
	c.handle(resp, req, userOf(t, asker.Proxy()))
	if got := resp.Body.String(); got != "myself" {
		t.Errorf("localhost: %s", got)
	}
	env := ProxyEnvironment(asker.Proxy())
	if !slices.Contains(env, "http_proxy="+asker.Proxy()) || !slices.Contains(env, "HTTPS_PROXY="+asker.Proxy()) {
		t.Errorf("got %v", env)
	}
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "no_proxy=127.0.0.1,") }) {
		t.Errorf("got %v", env)
	}
}

// userOf returns the client named by a proxy's URL.
func userOf(t *testing.T, proxy string) client {
	t.Helper()
	c, ok := parsePodUser(mustParse(t, proxy).User.Username())
	if !ok {
		t.Fatalf("%s is nobody's", proxy)
	}
	return c
}
