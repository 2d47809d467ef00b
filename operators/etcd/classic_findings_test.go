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
func (s *classicStage) looksFine(t *testing.T, cluster *v1beta2.EtcdCluster, members int) {
	t.Helper()
	s.read(cluster)
	status := cluster.Status
	if status.Phase != v1beta2.ClusterPhaseRunning || condition(cluster, v1beta2.ConditionAvailable) != metav1.ConditionTrue || len(status.Members.Ready) != members {
		t.Errorf("the status does notice something: %+v", status)
	}
}

// TestClassicQuorumLost is E-01, and E-08 as far as nothing is taken back.
func TestClassicQuorumLost(t *testing.T) {
	t.Parallel()
	s := newClassic(t)
	s.run(t)
	cluster := s.cluster(t, 3)
	pods := s.becomes(t, cluster, 3)
	// Both at once: between two deletions the operator might replace the first one, which is another story.
	s.change(cluster, func() { cluster.Spec.Paused = true })
	s.passes(t, saysPaused, 1)
	s.kill(t, &pods[0])
	s.kill(t, &pods[1])
	s.change(cluster, func() { cluster.Spec.Paused = false })
	s.says(t, "lost quorum")
	s.passes(t, saysFailed, 2)
	s.looksFine(t, cluster, 3)
	if left := podNames(s.pods(t)); !slices.Equal(left, []string{pods[2].Name}) {
		t.Errorf("there are %v", left)
	}
	// A leader that was killed serves for some seconds while it hands over.
	store := s.store(t, cluster)
	eventually(t, "there is no quorum", func() error {
		if err := answers(t, store); err == nil {
			return errors.New("a write was taken")
		}
		return nil
	})
}

// TestClassicAllDead is E-02.
func TestClassicAllDead(t *testing.T) {
	t.Parallel()
	s := newClassic(t)
	s.run(t)
	cluster := s.cluster(t, 1)
	pods := s.becomes(t, cluster, 1)
	s.kill(t, &pods[0])
	s.passes(t, saysDead, 3)
	s.looksFine(t, cluster, 1)
	if left := s.pods(t); len(left) > 0 {
		t.Errorf("there are %v", podNames(left))
	}
}

// TestClassicSecondMember is E-04: the article's own step, on a cluster where the second pod finds no place.
func TestClassicSecondMember(t *testing.T) {
	t.Parallel()
	s := newClassic(t)
	s.run(t)
	cluster := s.cluster(t, 1)
	s.becomes(t, cluster, 1)
	store := s.store(t, cluster)
	eventually(t, "it takes a write", func() error { return answers(t, store) })
	s.change(cluster, func() {
		cluster.Spec.Size = 2
		cluster.Spec.Pod = &v1beta2.PodPolicy{NodeSelector: map[string]string{"there": "is-none"}}
	})
	s.passes(t, saysPending, 2)
	if err := answers(t, store); err == nil {
		t.Error("the second voter is not there, and a write was taken")
	}
	s.looksFine(t, cluster, 1)

	pods := s.pods(t)
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending })
	s.kill(t, &pods[i])
	s.passes(t, saysFailed, 3)
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
	s := newClassic(t)
	replies := &lostReplies{dial: s.dial}
	replies.on.Store(true)
	s.run(t, func(o *etcd.Options) { o.Dial = replies.connect })
	cluster := s.cluster(t, 1)
	s.becomes(t, cluster, 1)
	s.resize(cluster, 2)
	eventually(t, "an answer is lost", func() error {
		if replies.lost.Load() == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	replies.on.Store(false)
	s.passes(t, saysFailed, 2)
	if pods := s.pods(t); len(pods) != 1 {
		t.Errorf("there are %v", podNames(pods))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer, err := s.store(t, cluster).MemberList(ctx, clientv3.WithSerializable())
	if err != nil || len(answer.Members) != 2 {
		t.Errorf("etcd has %v (%v)", answer, err)
	}
	if err := answers(t, s.store(t, cluster)); err == nil {
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
	s := newClassic(t)
	s.run(t)
	cluster := s.cluster(t, 3)
	s.becomes(t, cluster, 3)
	s.change(cluster, func() { cluster.Spec.Version = "3.2.13" })
	eventually(t, "two members are upgraded and not Ready, of three", func() error {
		down := 0
		for _, pod := range s.pods(t) {
			if pod.Annotations[etcd.VersionAnnotation] == "3.2.13" && !podIsReady(&pod) {
				down++
			}
		}
		if down < 2 {
			return fmt.Errorf("%d are", down)
		}
		return nil
	})
	s.becomes(t, cluster, 3)
}

// TestClassicPause is E-07, and what a pause does.
func TestClassicPause(t *testing.T) {
	t.Parallel()
	s := newClassic(t)
	s.run(t)
	cluster := s.cluster(t, 3)
	pods := s.becomes(t, cluster, 3)
	s.change(cluster, func() { cluster.Spec.Paused = true })
	s.passes(t, saysPaused, 1)
	s.kill(t, &pods[1])
	s.passes(t, saysPaused, 3)
	s.read(cluster)
	if cluster.Status.ControlPaused {
		t.Error("the status says that it is paused")
	}
	if left := s.pods(t); len(left) != 2 {
		t.Errorf("there are %v", podNames(left))
	}
	s.change(cluster, func() { cluster.Spec.Paused = false })
	eventually(t, "it is replaced", func() error {
		if left := podNames(s.pods(t)); len(left) != 3 || slices.Contains(left, pods[1].Name) {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
}

// TestClassicAvailableTooSoon is E-08: Available is there before a member is Ready.
func TestClassicAvailableTooSoon(t *testing.T) {
	t.Parallel()
	s := newClassic(t)
	s.run(t)
	// Its readiness cannot be told before a second has passed, and the next pass comes sooner.
	cluster := s.cluster(t, 1)
	eventually(t, "it is Available", func() error {
		s.read(cluster)
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
func (s *classicStage) runRefused(t *testing.T, refuse func(*http.Request) error, changes ...func(*etcd.Options)) (stop func()) {
	t.Helper()
	cfg := s.operatorConfig(t, etcd.Classic)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return refusals{next, refuse} })
	return s.operateAs(t, cfg, s.options(changes...))
}

// TestClassicLostWrite is E-09: the one write of the status that says Available gets lost.
func TestClassicLostWrite(t *testing.T) {
	t.Parallel()
	s := newClassic(t)
	var armed, lost atomic.Bool
	s.runRefused(t, func(req *http.Request) error {
		if armed.Load() && req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/etcdclusters/example") && !lost.Swap(true) {
			return errors.New("lost on the way")
		}
		return nil
	})
	// While it is paused its member becomes Ready, so that there is nothing more to write afterwards.
	cluster := s.cluster(t, 1, func(c *v1beta2.EtcdCluster) { c.Spec.Paused = true })
	eventually(t, "the member is Ready, and the operator has come to rest", func() error {
		if pods := s.pods(t); len(pods) != 1 || !podIsReady(&pods[0]) {
			return fmt.Errorf("there are %v", describePods(pods))
		}
		return nil
	})
	s.passes(t, saysPaused, 1)
	armed.Store(true)
	s.change(cluster, func() { cluster.Spec.Paused = false })
	s.says(t, "lost on the way")
	// A pass later it would be written, if it were tried again. Another cluster shows that passes go on.
	other := s.cluster(t, 1, func(c *v1beta2.EtcdCluster) { c.Name = "other" })
	eventually(t, "another cluster is looked after", func() error {
		s.read(other)
		if condition(other, v1beta2.ConditionAvailable) == "" {
			return errors.New("not yet")
		}
		return nil
	})
	s.read(cluster)
	if condition(cluster, v1beta2.ConditionAvailable) != "" {
		t.Errorf("it was written after all: %+v", cluster.Status)
	}
	s.touch(t, cluster, 1)
	eventually(t, "it is written after an event", func() error {
		s.read(cluster)
		if condition(cluster, v1beta2.ConditionAvailable) == "" {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})
}

// touch changes an annotation.
func (s *classicStage) touch(t *testing.T, cluster *v1beta2.EtcdCluster, n int) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"`+strconv.Itoa(n)+`"}}}`))
	if err := s.Patch(t.Context(), cluster, patch); err != nil {
		t.Fatal(err)
	}
}

// TestClassicTouchedAllTheTime is E-10. The period is long, so that there is no gap by chance.
func TestClassicTouchedAllTheTime(t *testing.T) {
	t.Parallel()
	s := newClassic(t)
	s.run(t, func(o *etcd.Options) { o.Period = 2 * time.Second })
	cluster := s.cluster(t, 1)
	s.becomes(t, cluster, 1)
	began, n := time.Now(), 0
	s.touch(t, cluster, n)
	s.resize(cluster, 2)
	eventually(t, "three periods have passed", func() error {
		n++
		s.touch(t, cluster, n)
		if time.Since(began) < 6*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	if pods := s.pods(t); len(pods) != 1 {
		t.Errorf("touched %d times, it was looked after: %v", n, podNames(pods))
	}
	eventually(t, "it is looked after when nobody touches it", func() error {
		if pods := s.pods(t); len(pods) != 2 {
			return fmt.Errorf("there are %v", podNames(pods))
		}
		return nil
	})
}
