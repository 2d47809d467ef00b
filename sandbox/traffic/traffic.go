// Package traffic asks a URL again and again with real HTTP requests, as somebody who uses a service does, and tells
// what each of them got.
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

// Prober asks a URL.
type Prober struct {
	// URL to be asked, with GET. A redirect is an answer, and not followed.
	URL string
	// Transport makes the requests. Each asks it to close its connection, so that the next one needs a new one.
	// Default: [http.DefaultTransport].
	Transport http.RoundTripper
	// Interval from the begin of a request to that of the next, whether there is an answer yet or not. Default: 1 s.
	Interval time.Duration
	// Timeout after which there is no answer. Default: 5 s.
	Timeout time.Duration
	// Count of requests after which it ends. Default: it goes on.
	Count int
	// InFlight is how many requests may wait for an answer; with so many the next one is late. Default: 256.
	InFlight int
}

// Run asks until ctx ends or Count is reached, and hands over each answer when it has come, one at a time. At the
// deadline of ctx no more is asked, and what was asked is waited for; when ctx is cancelled that is given up, and the
// error says so.
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

// beginAll begins requests at their times; each tells when it is done.
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

// CheckURL tells what is wrong with a URL that is to be asked.
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
	defer func() { _ = resp.Body.Close() }() // it was read as far as is wanted
	if body, err = firstLine(resp.Body); err != nil {
		return resp.StatusCode, shorten(body), err
	}
	if strings.Contains(resp.Header.Get("Proxy-Status"), "error=") {
		return 0, "", proxyError(req.URL, body)
	}
	return resp.StatusCode, shorten(body), nil
}

// proxyError is what a proxy says that has no answer of the server (RFC 9209). What was asked for is known.
func proxyError(asked *url.URL, says string) error {
	port := cmp.Or(asked.Port(), map[string]string{"http": "80", "https": "443"}[asked.Scheme])
	return errors.New(strings.TrimPrefix(says, "connect "+net.JoinHostPort(asked.Hostname(), port)+": "))
}
