package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// answers reports whether the cluster takes a write, in the time that a client may well expect.
func answers(t *testing.T, store *clientv3.Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := store.Put(ctx, "is", "there")
	return err
}

// lostReplies has the connections that ask for a new member never get an answer.
type lostReplies struct {
	dial func(context.Context, string) (net.Conn, error)
	on   atomic.Bool
	lost atomic.Int32
}

// TestClassicGhost is E-05: the reply to the request for a new member gets lost, and etcd has a member without a pod.
func TestClassicGhost(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	replies := &lostReplies{dial: env.dial}
	replies.on.Store(true)
	env.run(t, func(o *etcd.Options) { o.Dial = replies.connect })
	cluster := env.cluster(t)
	env.becomes(t, cluster, 1)
	env.resize(cluster, 2)
	sandboxtest.Eventually(t, "an answer is lost", func() error {
		if replies.lost.Load() == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	replies.on.Store(false)
	env.passes(t, saysFailed, 2)
	if pods := env.pods(t); len(pods) != 1 {
		t.Errorf("there are %v", podNames(pods))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer, err := env.store(t, cluster).MemberList(ctx, clientv3.WithSerializable())
	if err != nil || len(answer.Members) != 2 {
		t.Errorf("etcd has %v (%v)", answer, err)
	}
	if err := answers(t, env.store(t, cluster)); err == nil {
		t.Error("one of two voters is a ghost, and a write was taken")
	}
}

func (r *lostReplies) connect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := r.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Conn: conn, replies: r, closed: make(chan struct{})}, nil
}

type lossyConn struct {
	net.Conn
	replies *lostReplies
	mute    atomic.Bool
	once    sync.Once
	closed  chan struct{}
}

func (c *lossyConn) Write(data []byte) (int, error) {
	// Only a request for a new member has a peer URL in it.
	if c.replies.on.Load() && strings.Contains(string(data), ":2380") {
		c.mute.Store(true)
	}
	return c.Conn.Write(data)
}

func (c *lossyConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if c.mute.Load() && err == nil {
		c.replies.lost.Add(1)
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *lossyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestClassicLostWrite is E-09: the one write of the status that says Available gets lost.
func TestClassicLostWrite(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	var armed, lost atomic.Bool
	cfg := env.operatorConfig(t, etcd.Classic)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return sandboxtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if armed.Load() && req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/etcdclusters/example") && !lost.Swap(true) {
				return nil, errors.New("lost on the way")
			}
			return next.RoundTrip(req)
		})
	})
	env.operateAs(t, cfg, env.options())
	// While it is paused its member becomes Ready, so that there is nothing more to write afterwards.
	cluster := env.cluster(t, func(c *v1beta2.EtcdCluster) { c.Spec.Paused = true })
	sandboxtest.Eventually(t, "the member is Ready, and the operator has come to rest", func() error {
		if pods := env.pods(t); len(pods) != 1 || !podIsReady(&pods[0]) {
			return fmt.Errorf("there are %v", describePods(pods))
		}
		return nil
	})
	env.passes(t, saysPaused, 1)
	armed.Store(true)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false })
	env.says(t, "lost on the way")
	// A pass later it would be written, if it were tried again. Another cluster shows that passes go on.
	other := env.cluster(t, func(c *v1beta2.EtcdCluster) { c.Name = "other" })
	sandboxtest.Eventually(t, "another cluster is looked after", func() error {
		env.MustGet(other)
		if condition(other, v1beta2.ConditionAvailable) == "" {
			return errors.New("not yet")
		}
		return nil
	})
	env.MustGet(cluster)
	if condition(cluster, v1beta2.ConditionAvailable) != "" {
		t.Errorf("it was written after all: %+v", cluster.Status)
	}
	env.touch(t, cluster)
	sandboxtest.Eventually(t, "it is written after an event", func() error {
		env.MustGet(cluster)
		if condition(cluster, v1beta2.ConditionAvailable) == "" {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})
}

// TestClassicServiceDeleted is E-16.
func TestClassicServiceDeleted(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	stop := env.run(t)
	cluster := env.cluster(t)
	env.becomes(t, cluster, 1)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: "example-client"}}
	env.MustDelete(service)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = true })
	env.passes(t, saysPaused, 1)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false; cluster.Spec.Size = 2 })
	env.becomes(t, cluster, 2)
	if env.Exists(service) {
		t.Error("it came back")
	}
	stop()
	env.run(t)
	sandboxtest.Eventually(t, "it comes back with another life of the operator", func() error {
		if !env.Exists(service) {
			return errors.New("it does not")
		}
		return nil
	})
}

// touch changes an annotation.
func (env *classicEnv) touch(t *testing.T, cluster *v1beta2.EtcdCluster) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"1"}}}`))
	if err := env.Patch(t.Context(), cluster, patch); err != nil {
		t.Fatal(err)
	}
}
