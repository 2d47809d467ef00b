// Package traffic sends real HTTP requests to a URL again and again, as a client of a service does, and reports the
// answer of each.
//
//	p := traffic.Prober{URL: "http://web.default.svc.cluster.local:8080", Transport: throughTheProxy}
//	err := p.Run(ctx, func(a traffic.Answer) { fmt.Println(a) }) // 23:55:59: Maintenance Page !
package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The defaults of a [Prober].
const (
	DefaultInterval = time.Second
	DefaultTimeout  = 5 * time.Second
	DefaultInFlight = 256
)

// Prober sends GET requests to a URL at a fixed interval.
type Prober struct {
	// URL is the URL to request. Redirects are reported as answers, not followed.
	URL string
	// Transport makes the requests. Each request asks it to close the connection, so that the next one opens a new one.
	// Default: [http.DefaultTransport].
	Transport http.RoundTripper
	// Interval is the time from the start of one request to the start of the next, answered or not. Default: 1 s.
	Interval time.Duration
	// Timeout limits one request. Default: 5 s.
	Timeout time.Duration
	// Count is the number of requests to send. Default: no limit.
	Count int
	// InFlight is the number of requests that may wait for an answer at once; beyond it, the next one is delayed.
	// Default: 256.
	InFlight int
}

// Run sends requests until ctx ends or Count is reached, and calls report with each answer, one at a time. At the
// deadline of ctx it sends no more and waits for the requests under way. If ctx is cancelled, it gives those up and
// returns an error.
func (p *Prober) Run(ctx context.Context, report func(Answer)) error {
	if err := CheckURL(p.URL); err != nil {
		return err
	}
	asking, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			giveUp()
		}
	})()
	answers := make(chan Answer)
	go func() {
		defer close(answers)
		var waiting sync.WaitGroup
		p.beginAll(ctx, func(done func()) {
			waiting.Go(func() {
				defer done()
				if a := p.ask(asking); asking.Err() == nil {
					answers <- a
				}
			})
		})
		waiting.Wait()
	}()
	for a := range answers {
		report(a)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
}

// beginAll starts the requests at their times; each calls done at its end.
func (p *Prober) beginAll(ctx context.Context, begin func(done func())) {
	room := make(chan struct{}, cmp.Or(p.InFlight, DefaultInFlight))
	tick := time.NewTicker(cmp.Or(p.Interval, DefaultInterval))
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case room <- struct{}{}:
			begin(func() { <-room })
		case <-ctx.Done():
			return
		}
		if n == p.Count {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// CheckURL returns an error if the text is not an http or https URL that can be requested.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not a URL that begins with http:// or https://", text)
	case u.Hostname() == "":
		return fmt.Errorf("%q names no host", text)
	}
	return nil
}

// ask makes one request.
func (p *Prober) ask(ctx context.Context) Answer {
	timeout := cmp.Or(p.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a := Answer{Sent: time.Now()}
	a.Status, a.Body, a.Err = p.get(ctx)
	a.Latency = time.Since(a.Sent)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a.Err = fmt.Errorf("no answer in %v", timeout)
	}
	return a
}

func (p *Prober) get(ctx context.Context) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	transport := p.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // as much as needed was read
	if body, err = firstLine(resp.Body); err != nil {
		return resp.StatusCode, shorten(body), err
	}
	if strings.Contains(resp.Header.Get("Proxy-Status"), "error=") {
		return 0, "", proxyError(req.URL, body)
	}
	return resp.StatusCode, shorten(body), nil
}

// proxyError makes an error of the proxy's own message (RFC 9209), without the address, which the caller knows.
func proxyError(asked *url.URL, says string) error {
	port := cmp.Or(asked.Port(), map[string]string{"http": "80", "https": "443"}[asked.Scheme])
	return errors.New(strings.TrimPrefix(says, "connect "+net.JoinHostPort(asked.Hostname(), port)+": "))
}
