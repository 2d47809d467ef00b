package traffic

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// ThroughProxy returns a transport that sends requests to an HTTP proxy, whose URL has the credentials.
func ThroughProxy(proxy string) (*http.Transport, error) {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a proxy", proxy)
	}
	return &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}, nil
}

// RecordThrough requests a URL through a proxy once a second and records the answers in a journal, until stop is called.
// The end of ctx does not end it.
func RecordThrough(ctx context.Context, proxy string, journal *trace.Journal, url string) (stop func(), err error) {
	transport, err := ThroughProxy(proxy)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	prober, recorder := Prober{URL: url, Transport: transport}, NewRecorder(journal, url)
	var work sync.WaitGroup
	work.Go(func() { _ = prober.Run(ctx, recorder.Record) }) // it ends by being cancelled
	return func() { cancel(); work.Wait() }, nil
}
