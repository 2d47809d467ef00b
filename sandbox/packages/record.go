package packages

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Actor is the actor of the events in a journal.
const Actor = "olm"

// settling is how long to wait after an object of OLM has changed, since changes of them come several at once.
const settling = 200 * time.Millisecond

// Record looks where the Subscriptions in a cluster stand whenever its journal tells of a change of OLM's objects, and records what
// has changed, until stop is called. The end of ctx does not end it.
func Record(ctx context.Context, config *rest.Config, journal *trace.Journal) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { record(ctx, config, journal) })
	return func() { cancel(); work.Wait() }
}

func record(ctx context.Context, config *rest.Config, journal *trace.Journal) {
	changed, cancel := journal.Subscribe()
	defer cancel()
	told := map[string]json.RawMessage{} // by catalog and name
	var due <-chan time.Time
	for seq := int64(0); ; {
		for _, e := range journal.Since(seq) {
			seq = e.Seq
			if due == nil && e.Kind != trace.KindPackage && strings.HasPrefix(e.Object.APIVersion, "operators.coreos.com/") {
				due = time.After(settling)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-due:
			due = nil
			all, _ := Of(ctx, config) // who does not answer is asked again after the next change
			tell(all, told, journal)
		}
	}
}

// tell records the packages that are not as they were told before: those that Subscriptions ask for, or have asked for.
func tell(all []trace.Package, told map[string]json.RawMessage, journal *trace.Journal) {
	for _, p := range all {
		key := p.Catalog + "/" + p.Name
		before := told[key]
		if len(p.Subscriptions) == 0 && before == nil {
			continue
		}
		now, err := json.Marshal(p)
		if err != nil || string(now) == string(before) {
			continue
		}
		told[key] = now
		namespace, _, _ := strings.Cut(p.Catalog, "/")
		journal.Append(trace.Event{
			Kind: trace.KindPackage, Actor: Actor, Before: before, After: now, Object: trace.Ref{
				APIVersion: "packages.operators.coreos.com/v1", Kind: "PackageManifest", Namespace: namespace, Name: p.Name,
			},
		})
	}
}
