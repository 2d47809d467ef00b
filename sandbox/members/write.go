package members

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
)

// The defaults of a [Writer].
const (
	DefaultWriteInterval = 50 * time.Millisecond
	DefaultWriteTimeout  = time.Second
)

// writeKey is the key that is written again and again.
const writeKey = "operator-lab/writes"

// Endpoint returns the URL of a cluster's client Service.
func Endpoint(cluster types.NamespacedName) string {
	return fmt.Sprintf("http://%s-client.%s.svc:%d", cluster.Name, cluster.Namespace, clientPort)
}

// Write is the outcome of one write.
type Write struct {
	// Sent is the time at which the write began.
	Sent time.Time
	// Latency is the duration of the write.
	Latency time.Duration
	// Err is the reason why it was not acknowledged. It may have been carried out all the same.
	Err error
}

// Problem describes in a few words why a write was not acknowledged; empty if it was.
func (w Write) Problem() string {
	if w.Err == nil {
		return ""
	}
	return explainWrite(w.Err)
}

// Writer writes to a cluster again and again.
type Writer struct {
	// Endpoint to be written to; see [Endpoint].
	Endpoint string
	// Dial reaches it.
	Dial Dial
	// TLS is for an endpoint that begins with https.
	TLS *tls.Config
	// Interval from the begin of a write to that of the next, whether it was acknowledged yet or not. Default: 50 ms.
	Interval time.Duration
	// Timeout limits one write. Default: 1 s.
	Timeout time.Duration
	// Wanted reports whether there is a cluster to write to. Default: always true.
	Wanted func() bool
	// Over is called when there is no longer a cluster to write to, but not while a write is reported. May be nil.
	Over func()
}

// Run writes until ctx ends, and reports the outcome of each write, one at a time. While Wanted returns false, it
// writes nothing and does not report failures.
func (w *Writer) Run(ctx context.Context, report func(Write)) error {
	client, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{w.Endpoint}, TLS: w.TLS, Logger: zap.NewNop(), DialTimeout: w.timeout(),
		// A node without power does not answer; members allow a keep-alive every five seconds.
		DialKeepAliveTime: 6 * time.Second, DialKeepAliveTimeout: time.Second,
		DialOptions: []grpc.DialOption{
			grpc.WithNoProxy(), grpc.WithConnectParams(reconnect), grpc.WithUserAgent(userAgent),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return w.Dial(ctx, "tcp", address) }),
		},
	})
	if err != nil {
		return err
	}
	told := make(chan func())
	go func() {
		defer close(told)
		w.begin(ctx, told, func(n int) {
			if result := w.write(ctx, client, n); ctx.Err() == nil && w.wanted() {
				told <- func() { report(result) }
			}
		})
	}()
	for tell := range told {
		tell()
	}
	return errors.Join(ctx.Err(), client.Close())
}

func (w *Writer) timeout() time.Duration { return cmp.Or(w.Timeout, DefaultWriteTimeout) }

func (w *Writer) wanted() bool { return w.Wanted == nil || w.Wanted() }

// begin starts the writes at their times, and returns when ctx and all of them have ended.
func (w *Writer) begin(ctx context.Context, told chan<- func(), write func(n int)) {
	tick := time.NewTicker(cmp.Or(w.Interval, DefaultWriteInterval))
	defer tick.Stop()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	wanted := false
	for n := 1; ; n++ {
		was := wanted
		wanted = w.wanted()
		switch {
		case wanted:
			waiting.Go(func() { write(n) })
		case was && w.Over != nil:
			waiting.Wait()
			told <- w.Over
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Writer) write(ctx context.Context, client *clientv3.Client, n int) Write {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), w.timeout())
	defer cancel()
	out := Write{Sent: time.Now()}
	_, out.Err = client.Put(ctx, writeKey, strconv.Itoa(n))
	out.Latency = time.Since(out.Sent)
	return out
}

// explainWrite says why a write failed, without the parts that differ each time.
func explainWrite(err error) string {
	if isLate(err) {
		return "no answer in time"
	}
	if _, is := status.FromError(err); is {
		return explain(err)
	}
	return err.Error()
}
