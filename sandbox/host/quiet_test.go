package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/host"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestTrafficDoesNotKeepItWaiting: a write whose echo never comes is given up, also while somebody asks a page again and
// again.
func TestTrafficDoesNotKeepItWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := trace.New(trace.Options{})
		word := trace.Ref{Kind: "Zundoko", Name: "lost", UID: "u"}
		j.Append(trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: word, ResourceVersion: "1"})
		j.Append(trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: word, ResourceVersion: "2"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					j.Append(trace.Event{Kind: trace.KindTraffic, Verb: trace.VerbAnswer, Message: "Production Page !"})
				case <-ctx.Done():
					return
				}
			}
		}()
		if err := host.AwaitQuiet(ctx, j); err != nil {
			t.Error(err)
		}
		cancel()
	})
}
