package packages

import (
	"context"
	"encoding/json"
	"slices"
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

// askAgain is how long to wait until who did not answer is asked again.
const askAgain = time.Second

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
	told := map[[2]string]json.RawMessage{} // by catalog and name
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
			all, err := Of(ctx, config)
			if err != nil {
				due = time.After(askAgain)
			} else {
				all = append(all, gone(all, told)...)
			}
			tell(all, told, journal)
		}
	}
}

// gone returns the packages that were told of and that nobody has, or asks for, any more: without channels and Subscriptions.
func gone(all []trace.Package, told map[[2]string]json.RawMessage) (missing []trace.Package) {
	for key := range told {
		if !slices.ContainsFunc(all, func(p trace.Package) bool { return p.Catalog == key[0] && p.Name == key[1] }) {
			missing = append(missing, trace.Package{Catalog: key[0], Name: key[1], Channels: []trace.Channel{}})
		}
	}
	return missing
}

// tell records the packages that are not as they were told before: those that Subscriptions ask for, or have asked for.
func tell(all []trace.Package, told map[[2]string]json.RawMessage, journal *trace.Journal) {
	for _, p := range all {
		key := [2]string{p.Catalog, p.Name}
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
