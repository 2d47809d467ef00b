package cli

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/host"
	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// watching is somebody who looks at the members of the demo's cluster of etcd, and writes to it, while it plays.
type watching struct {
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// beginStore has the demo's cluster of etcd looked at, if it has one: what is seen goes into the journal.
func (s *show) beginStore(ctx context.Context) error {
	demo, ok := s.instance.Demo().(operators.Store)
	if !ok {
		return nil
	}
	var cluster types.NamespacedName
	cluster.Namespace, cluster.Name = demo.Store()
	// As with the scenario: it ends when the person quits.
	ctx = context.WithoutCancel(ctx)
	var err error
	s.watching, err = watchStore(ctx, s.stage.Cluster, s.journal, cluster)
	return err
}

// watchStore looks at the members of all clusters of etcd, and writes to one.
func watchStore(ctx context.Context, lab host.Cluster, journal *trace.Journal, cluster types.NamespacedName) (*watching, error) {
	observer, err := members.New(members.Options{Config: lab.Config(), Dial: lab.DialContext})
	if err != nil {
		return nil, err
	}
	endpoint := members.Endpoint(cluster)
	seen, written := members.NewRecorder(journal), members.NewWriteRecorder(journal, cluster, endpoint)
	writer := members.Writer{
		Endpoint: endpoint, Dial: lab.DialContext, Over: written.Over,
		Wanted: func() bool { return observer.Wanted(cluster) },
	}
	w := &watching{}
	ctx, w.cancel = context.WithCancel(ctx)
	// Both end by being cancelled.
	w.work.Go(func() { _ = observer.Run(ctx, seen.Record) })
	w.work.Go(func() { _ = writer.Run(ctx, written.Record) })
	return w, nil
}

func (w *watching) stop() {
	w.cancel()
	w.work.Wait()
}
