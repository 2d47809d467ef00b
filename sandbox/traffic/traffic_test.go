package traffic

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// world is an [http.RoundTripper] without a network.
type world func(*http.Request) (*http.Response, error)

func (w world) RoundTrip(req *http.Request) (*http.Response, error) { return w(req) }

func says(status int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// sleep lets time pass, unless the request is given up.
func sleep(req *http.Request, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-req.Context().Done():
		return req.Context().Err()
	}
}

const somewhere = "http://web.default:8080"

func TestAsksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := Prober{URL: somewhere, Count: 3, Transport: world(func(req *http.Request) (*http.Response, error) {
			if !req.Close || req.URL.String() != somewhere || req.Method != http.MethodGet {
				t.Errorf("asked %s %s, to be closed: %v", req.Method, req.URL, req.Close)
			}
			if err := sleep(req, 20*time.Millisecond); err != nil {
				return nil, err
			}
			return says(http.StatusOK, "\n\n Production Page !\nmore\n")
		})}
		var got []Answer
		if err := p.Run(t.Context(), func(a Answer) { got = append(got, a) }); err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 {
			t.Fatalf("%d answers", len(got))
		}
		for i, a := range got {
			if a.Sent.Sub(began) != time.Duration(i)*time.Second || a.Latency != 20*time.Millisecond || !a.OK() || a.Text() != "Production Page !" {
				t.Errorf("answer %d: %+v", i, a)
			}
		}
	})
}

// TestDoesNotWaitForAnswers: a request that is not answered does not keep the next one from its time.
func TestDoesNotWaitForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		p := Prober{URL: somewhere, Interval: 100 * time.Millisecond, Timeout: time.Second, Count: 5, Transport: world(func(req *http.Request) (*http.Response, error) {
			if n.Add(1) == 1 {
				return nil, sleep(req, time.Hour)
			}
			return says(http.StatusOK, "here")
		})}
		var texts []string
		if err := p.Run(t.Context(), func(a Answer) { texts = append(texts, a.Text()) }); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(texts, " "); got != "here here here here (no answer in 1s)" {
			t.Errorf("got %s", got)
		}
	})
}

// TestRoom: no more requests than allowed are under way.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		p := Prober{URL: somewhere, Interval: time.Millisecond, InFlight: 4, Count: 40, Transport: world(func(req *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return nil, errors.Join(sleep(req, 50*time.Millisecond), errors.New("none"))
		})}
		if err := p.Run(t.Context(), func(Answer) {}); err != nil {
			t.Fatal(err)
		}
		if most.Load() != 4 {
			t.Errorf("%d at once", most.Load())
		}
	})
}

func TestEnds(t *testing.T) {
	slow := world(func(req *http.Request) (*http.Response, error) {
		if err := sleep(req, 300*time.Millisecond); err != nil {
			return nil, err
		}
		return says(http.StatusOK, "late")
	})
	t.Run("at a deadline, with what is under way", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2100*time.Millisecond)
			defer cancel()
			n := 0
			p := Prober{URL: somewhere, Transport: slow}
			if err := p.Run(ctx, func(a Answer) { n++ }); err != nil || n != 3 {
				t.Errorf("%d answers, %v", n, err)
			}
		})
	})
	t.Run("at once when cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			began, n := time.Now(), 0
			time.AfterFunc(2100*time.Millisecond, cancel)
			p := Prober{URL: somewhere, Transport: slow}
			err := p.Run(ctx, func(a Answer) { n++ })
			if !errors.Is(err, context.Canceled) || n != 2 || time.Since(began) != 2100*time.Millisecond {
				t.Errorf("%d answers after %v, %v", n, time.Since(began), err)
			}
		})
	})
}

// TestNewConnections: a real server meets a new connection for each request.
func TestNewConnections(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Production Page !\n")
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p := Prober{URL: server.URL, Interval: time.Millisecond, Count: 10, InFlight: 1}
	failed := 0
	if err := p.Run(t.Context(), func(a Answer) {
		if !a.OK() {
			failed++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if failed > 0 || connections.Load() != 10 {
		t.Errorf("%d failed, %d connections", failed, connections.Load())
	}
	server.Close()
	var after Answer
	p.Count = 1
	if err := p.Run(t.Context(), func(a Answer) { after = a }); err != nil {
		t.Fatal(err)
	}
	if want := "(connection refused: dial tcp " + strings.TrimPrefix(server.URL, "http://") + ": connect)"; after.Text() != want {
		t.Errorf("got %s, want %s", after.Text(), want)
	}
}

func TestTexts(t *testing.T) {
	from, to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40001}, &net.TCPAddr{IP: net.IPv4(10, 244, 1, 5), Port: 8080}
	for _, test := range []struct {
		a    Answer
		want string
		ok   bool
	}{
		{Answer{Status: 200, Body: "Production Page !"}, "Production Page !", true},
		{Answer{Status: 302}, "", true},
		{Answer{Status: 503, Body: "no endpoints"}, "(503 Service Unavailable: no endpoints)", false},
		{Answer{Status: 404}, "(404 Not Found)", false},
		{Answer{Err: io.EOF}, "(the connection was closed without an answer: EOF)", false},
		{Answer{Err: &net.DNSError{Err: "no such host", Name: "web", IsNotFound: true}}, "(no such host: web)", false},
		{Answer{Err: &net.OpError{Op: "read", Net: "tcp", Source: from, Addr: to, Err: syscall.ECONNRESET}}, "(connection reset by peer: read tcp 10.244.1.5:8080)", false},
		{Answer{Err: errors.New("a\nb\x1b[31m")}, "(a b[31m)", false},
	} {
		if got := test.a.Text(); got != test.want || test.a.OK() != test.ok {
			t.Errorf("%+v: %q, OK %v", test.a, got, test.a.OK())
		}
	}
}

// TestProxyError: what the proxy says because there is no answer is told from an answer of the server.
func TestProxyError(t *testing.T) {
	const refused = "connect web.default:80: connection refused: the Service has no ready endpoints"
	for _, test := range []struct{ status, want string }{
		{"operator-lab; error=destination_unavailable", "(connection refused: the Service has no ready endpoints)"},
		{"", "(502 Bad Gateway: " + refused + ")"},
	} {
		p := Prober{URL: "http://web.default", Count: 1, Transport: world(func(*http.Request) (*http.Response, error) {
			resp, err := says(http.StatusBadGateway, refused)
			resp.Header = http.Header{"Proxy-Status": {test.status}}
			return resp, err
		})}
		if err := p.Run(t.Context(), func(a Answer) {
			if a.Text() != test.want || a.OK() {
				t.Errorf("%q: %s", test.status, a.Text())
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadURL(t *testing.T) {
	for _, bad := range []string{"", "web", "ftp://web", "http://", "http://:80", "http://a b", "http://%zz"} {
		p := Prober{URL: bad}
		if err := p.Run(t.Context(), func(Answer) { t.Error("asked") }); err == nil {
			t.Errorf("%q is asked", bad)
		}
	}
}

func FuzzFirstLine(f *testing.F) {
	for _, seed := range []string{"", "\n\n", "Production Page !\n", "<html>\x00\x1b]0;title\a", "\xff\xfe", strings.Repeat("長い", 999), "a\u202eb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		line, err := firstLine(strings.NewReader(body))
		line = shorten(line)
		if err != nil || len([]rune(line)) > longestLine || strings.ContainsAny(line, "\n\r\x1b\x00\u202e") || strings.TrimSpace(line) != line {
			t.Errorf("%q becomes %q, %v", body, line, err)
		}
	})
}

func TestSummary(t *testing.T) {
	start := time.Date(2026, 1, 2, 23, 55, 57, 0, time.UTC)
	var s Summary
	for i, text := range []string{"Production Page !", "Production Page !", "", "", "Maintenance Page !"} {
		a := Answer{Sent: start.Add(time.Duration(i) * time.Second), Status: 200, Body: text, Latency: time.Duration(i+1) * time.Millisecond}
		if text == "" {
			a.Status = 503
		}
		s.Add(a)
	}
	var out strings.Builder
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `5 requests, 2 failed
       2  (503 Service Unavailable)
       2  Production Page !
       1  Maintenance Page !
latency p50 3ms, p99 5ms; longest time without a success 3s
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	if err := new(Summary).Print(&out); err != nil || out.String() != "0 requests, 0 failed\n" {
		t.Errorf("nothing is %q, %v", out.String(), err)
	}
}

// TestSummaryIsBounded: a page that is another one each time fills no memory.
func TestSummaryIsBounded(t *testing.T) {
	var s Summary
	for i := range 1000 {
		s.Add(Answer{Sent: time.Now(), Status: 200, Body: strings.Repeat("x", i%200)})
	}
	if len(s.Texts) != manyTexts+1 || s.Texts[OtherTexts] != 500 {
		t.Errorf("%d texts, %d others", len(s.Texts), s.Texts[OtherTexts])
	}
}

func TestRecorder(t *testing.T) {
	j := trace.New(trace.Options{})
	r := NewRecorder(j, somewhere)
	for _, a := range []Answer{
		{Err: errors.New("nothing there yet")},
		{Status: 200, Body: "Production Page !", Latency: time.Millisecond},
		{Status: 200, Body: "Production Page !"},
		{Err: errors.New("refused")},
		{Status: 200, Body: "Maintenance Page !"},
	} {
		r.Record(a)
	}
	var got []string
	for _, e := range j.Since(0) {
		if e.Kind != trace.KindTraffic || e.Actor != Actor || e.URL() != somewhere {
			t.Errorf("%+v", e)
		}
		got = append(got, e.Verb+" "+trace.AnswerText(e))
	}
	if want := "switch Production Page !, answer Production Page !, switch (refused), switch Maintenance Page !"; strings.Join(got, ", ") != want {
		t.Errorf("got %q", got)
	}
	timeline := trace.NewTimeline(j)
	timeline.Update()
	all := timeline.Tip().Traffic()
	if len(all) != 1 || all[0].OK != 3 || all[0].Failed != 1 || all[0].Switches != 2 || all[0].Same != 1 || all[0].Replaced != 1 {
		t.Errorf("got %+v", all)
	}
}
