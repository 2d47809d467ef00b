package members

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// RecordAll observes the members of all etcd clusters and writes to one of the clusters, and records both in a journal, until
// stop is called. The end of ctx does not end it.
func RecordAll(ctx context.Context, o Options, journal *trace.Journal, cluster types.NamespacedName) (stop func(), err error) {
	observer, err := New(o)
	if err != nil {
		return nil, err
	}
	endpoint := Endpoint(cluster)
	seen, written := NewRecorder(journal), NewWriteRecorder(journal, cluster, endpoint)
	writer := Writer{
		Endpoint: endpoint, Dial: o.Dial, Over: written.Over,
		Wanted: func() bool { return observer.Wanted(cluster) },
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup // both end by being cancelled
	work.Go(func() { _ = observer.Run(ctx, seen.Record) })
	work.Go(func() { _ = writer.Run(ctx, written.Record) })
	return func() { cancel(); work.Wait() }, nil
}
