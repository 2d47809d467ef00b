package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
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

const (
	// What the operator says when it cannot do anything.
	saysDead    = "all etcd pods are dead."
	saysPending = "waiting for pods"
	saysPaused  = "paused: nothing is done"
	saysFailed  = `"error"=`
)

// answers tells whether the cluster takes a write, in the time that a client may well expect.
func answers(t *testing.T, store *clientv3.Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := store.Put(ctx, "is", "there")
	return err
}

// looksFine checks that the status still says that all is well.
func (env *classicEnv) looksFine(t *testing.T, cluster *v1beta2.EtcdCluster, members int) {
	t.Helper()
	env.MustGet(cluster)
	status := cluster.Status
	if status.Phase != v1beta2.ClusterPhaseRunning || condition(cluster, v1beta2.ConditionAvailable) != metav1.ConditionTrue || len(status.Members.Ready) != members {
		t.Errorf("the status does notice something: %+v", status)
	}
}

// TestClassicQuorumLost is E-01, and E-08 as far as nothing is taken back.
func TestClassicQuorumLost(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 3)
	pods := env.becomes(t, cluster, 3)
	// Both at once: between two deletions the operator might replace the first one, which is another story.
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = true })
	env.passes(t, saysPaused, 1)
	env.kill(t, &pods[0])
	env.kill(t, &pods[1])
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false })
	env.says(t, "lost quorum")
	env.passes(t, saysFailed, 2)
	env.looksFine(t, cluster, 3)
	if left := podNames(env.pods(t)); !slices.Equal(left, []string{pods[2].Name}) {
		t.Errorf("there are %v", left)
	}
	// A leader that was killed serves for some seconds while it hands over.
	store := env.store(t, cluster)
	sandboxtest.Eventually(t, "there is no quorum", func() error {
		if err := answers(t, store); err == nil {
			return errors.New("a write was taken")
		}
		return nil
	})
}

// TestClassicAllDead is E-02.
func TestClassicAllDead(t *testing.T) {
	t.Parallel()
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 1)
	pods := env.becomes(t, cluster, 1)
	env.kill(t, &pods[0])
	env.passes(t, saysDead, 3)
	env.looksFine(t, cluster, 1)
	if left := env.pods(t); len(left) > 0 {
		t.Errorf("there are %v", podNames(left))
	}
}

// TestClassicSecondMember is E-04: the article's own step, on a cluster where the second pod finds no place.
func TestClassicSecondMember(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 1)
	env.becomes(t, cluster, 1)
	store := env.store(t, cluster)
	sandboxtest.Eventually(t, "it takes a write", func() error { return answers(t, store) })
	env.MustUpdate(cluster, func() {
		cluster.Spec.Size = 2
		cluster.Spec.Pod = &v1beta2.PodPolicy{NodeSelector: map[string]string{"there": "is-none"}}
	})
	env.passes(t, saysPending, 2)
	if err := answers(t, store); err == nil {
		t.Error("the second voter is not there, and a write was taken")
	}
	env.looksFine(t, cluster, 1)

	pods := env.pods(t)
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending })
	env.kill(t, &pods[i])
	env.passes(t, saysFailed, 3)
	if err := answers(t, store); err == nil {
		t.Error("the second voter is gone, and a write was taken")
	}
}

// lostReplies has the connections that ask for a new member never get an answer.
type lostReplies struct {
	dial func(context.Context, string) (net.Conn, error)
	on   atomic.Bool
	lost atomic.Int32
}

// TestClassicGhost is E-05.
func TestClassicGhost(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	replies := &lostReplies{dial: env.dial}
	replies.on.Store(true)
	env.run(t, func(o *etcd.Options) { o.Dial = replies.connect })
	cluster := env.cluster(t, 1)
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

// TestClassicUpgradeInAHurry is E-06: the next member is upgraded while the one before is not Ready yet.
func TestClassicUpgradeInAHurry(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 3)
	env.becomes(t, cluster, 3)
	env.MustUpdate(cluster, func() { cluster.Spec.Version = "3.2.13" })
	sandboxtest.Eventually(t, "two members are upgraded and not Ready, of three", func() error {
		down := 0
		for _, pod := range env.pods(t) {
			if pod.Annotations[etcd.VersionAnnotation] == "3.2.13" && !podIsReady(&pod) {
				down++
			}
		}
		if down < 2 {
			return fmt.Errorf("%d are", down)
		}
		return nil
	})
	env.becomes(t, cluster, 3)
}

// TestClassicPause is E-07, and what a pause does.
func TestClassicPause(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 3)
	pods := env.becomes(t, cluster, 3)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = true })
	env.passes(t, saysPaused, 1)
	env.kill(t, &pods[1])
	env.passes(t, saysPaused, 3)
	env.MustGet(cluster)
	if cluster.Status.ControlPaused {
		t.Error("the status says that it is paused")
	}
	if left := env.pods(t); len(left) != 2 {
		t.Errorf("there are %v", podNames(left))
	}
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false })
	sandboxtest.Eventually(t, "it is replaced", func() error {
		if left := podNames(env.pods(t)); len(left) != 3 || slices.Contains(left, pods[1].Name) {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
}

// TestClassicAvailableTooSoon is E-08: Available is there before a member is Ready.
func TestClassicAvailableTooSoon(t *testing.T) {
	t.Parallel()
	env := newClassic(t)
	env.run(t)
	// Its readiness cannot be told before a second has passed, and the next pass comes sooner.
	cluster := env.cluster(t, 1)
	sandboxtest.Eventually(t, "it is Available", func() error {
		env.MustGet(cluster)
		if condition(cluster, v1beta2.ConditionAvailable) != metav1.ConditionTrue {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})
	if len(cluster.Status.Members.Ready) != 0 || len(cluster.Status.Members.Unready) != 1 {
		t.Errorf("the members are %+v", cluster.Status.Members)
	}
}

// refusals are writes that get no further.
type refusals struct {
	next   http.RoundTripper
	refuse func(*http.Request) error
}

func (r refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.refuse(req); err != nil {
		return nil, err
	}
	return r.next.RoundTrip(req)
}

// runRefused runs the operator, some of whose requests fail.
func (env *classicEnv) runRefused(t *testing.T, refuse func(*http.Request) error, changes ...func(*etcd.Options)) (stop func()) {
	t.Helper()
	cfg := env.operatorConfig(t, etcd.Classic)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return refusals{next, refuse} })
	return env.operateAs(t, cfg, env.options(changes...))
}

// TestClassicLostWrite is E-09: the one write of the status that says Available gets lost.
func TestClassicLostWrite(t *testing.T) {
	t.Parallel()
	env := newClassic(t)
	var armed, lost atomic.Bool
	env.runRefused(t, func(req *http.Request) error {
		if armed.Load() && req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/etcdclusters/example") && !lost.Swap(true) {
			return errors.New("lost on the way")
		}
		return nil
	})
	// While it is paused its member becomes Ready, so that there is nothing more to write afterwards.
	cluster := env.cluster(t, 1, func(c *v1beta2.EtcdCluster) { c.Spec.Paused = true })
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
	other := env.cluster(t, 1, func(c *v1beta2.EtcdCluster) { c.Name = "other" })
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
	env.touch(t, cluster, 1)
	sandboxtest.Eventually(t, "it is written after an event", func() error {
		env.MustGet(cluster)
		if condition(cluster, v1beta2.ConditionAvailable) == "" {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})
}

// touch changes an annotation.
func (env *classicEnv) touch(t *testing.T, cluster *v1beta2.EtcdCluster, n int) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"`+strconv.Itoa(n)+`"}}}`))
	if err := env.Patch(t.Context(), cluster, patch); err != nil {
		t.Fatal(err)
	}
}

// TestClassicTouchedAllTheTime is E-10. The period is long, so that there is no gap by chance.
func TestClassicTouchedAllTheTime(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t, func(o *etcd.Options) { o.Period = 2 * time.Second })
	cluster := env.cluster(t, 1)
	env.becomes(t, cluster, 1)
	began, n := time.Now(), 0
	env.touch(t, cluster, n)
	env.resize(cluster, 2)
	sandboxtest.Eventually(t, "three periods have passed", func() error {
		n++
		env.touch(t, cluster, n)
		if time.Since(began) < 6*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	if pods := env.pods(t); len(pods) != 1 {
		t.Errorf("touched %d times, it was looked after: %v", n, podNames(pods))
	}
	sandboxtest.Eventually(t, "it is looked after when nobody touches it", func() error {
		if pods := env.pods(t); len(pods) != 2 {
			return fmt.Errorf("there are %v", podNames(pods))
		}
		return nil
	})
}
