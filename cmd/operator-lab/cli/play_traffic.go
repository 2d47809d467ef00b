package cli

import (
	"context"
	"net/http"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/traffic"
)

// asking is somebody who asks the demo's URL once a second, while it plays.
type asking struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// beginTraffic has the demo's URL asked, if it has one: what it answers goes into the journal.
func (s *show) beginTraffic(ctx context.Context) error {
	demo, ok := s.instance.Demo().(operators.Traffic)
	if !ok || s.stage.proxy == "" {
		return nil
	}
	transport, err := throughProxy(s.stage.proxy)
	if err != nil {
		return err
	}
	s.asking = ask(ctx, s.journal, demo.Traffic(), transport)
	return nil
}

// ask begins to ask a URL; what it answers goes into the journal.
func ask(ctx context.Context, journal *trace.Journal, url string, transport http.RoundTripper) *asking {
	// As with the scenario: it ends when the person quits.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &asking{cancel: cancel, done: make(chan struct{})}
	prober := traffic.Prober{URL: url, Transport: transport}
	recorder := traffic.NewRecorder(journal, url)
	go func() {
		defer close(a.done)
		_ = prober.Run(ctx, recorder.Record) // it ends by being cancelled
	}()
	return a
}

func (a *asking) stop() {
	a.cancel()
	<-a.done
}
