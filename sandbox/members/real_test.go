package members

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// world runs etcd members in this process, at addresses like those of pods.
type world struct {
	mu    sync.Mutex
	where map[string]string // by the address in the cluster
	dirs  map[string]string
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	there := w.where[address]
	w.mu.Unlock()
	if there == "" {
		return nil, errors.New("connection refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, there)
}

func freePort(t *testing.T) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was only a question
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

// start starts a member, with the data of the last time; it ends when stopped.
func (w *world) start(t *testing.T, ip, name string, peer url.URL, initial, state string) (stop func()) {
	t.Helper()
	w.mu.Lock()
	if w.dirs[name] == "" {
		w.dirs[name] = t.TempDir()
	}
	dir := w.dirs[name]
	w.mu.Unlock()
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel = name, dir, "panic"
	client := freePort(t)
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster, c.ClusterState, c.UnsafeNoFsync = initial, state, true
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.where[ip+":2379"], w.where["kv-client.default.svc:2379"] = client.Host, client.Host
	w.mu.Unlock()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			w.mu.Lock()
			delete(w.where, ip+":2379")
			delete(w.where, "kv-client.default.svc:2379")
			w.mu.Unlock()
			e.Close()
		})
	}
	t.Cleanup(stop)
	return stop
}

// observe returns a store that needs no API server.
func (w *world) observe(t *testing.T) *store {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := indexer.Add(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": APIVersion, "kind": Kind, "metadata": map[string]any{"namespace": "default", "name": "kv", "uid": "1"},
	}}); err != nil {
		t.Fatal(err)
	}
	o := &Observer{
		options: Options{Dial: w.dial}, kube: fake.NewClientset(),
		clusters: cache.NewGenericLister(indexer, etcdClusters.GroupResource()),
	}
	s := &store{observer: o, name: types.NamespacedName{Namespace: "default", Name: "kv"}, askers: map[types.UID]*asker{}}
	t.Cleanup(s.close)
	return s
}

func podAt(name, ip string) pod {
	return pod{name: name, uid: types.UID(name), phase: corev1.PodRunning, ip: ip, requested: "3.2.13"}
}

// takeTime lets members take as long to start as a test takes, and to answer what a busy machine takes.
func takeTime(t *testing.T) {
	t.Helper()
	start, answer := startTime, answerTime
	t.Cleanup(func() { startTime, answerTime = start, answer })
	startTime, answerTime = time.Hour, sandboxtest.Patience
}

// TestRealMembers asks real members: one, which a learner joins that never starts, and which dies and comes back.
func TestRealMembers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts etcd")
	}
	takeTime(t)
	w := &world{where: map[string]string{}, dirs: map[string]string{}}
	peer := freePort(t)
	initial := "kv-a=" + peer.String()
	stop := w.start(t, "10.244.1.2", "kv-a", peer, initial, embed.ClusterStateFlagNew)
	s := w.observe(t)
	pods := []pod{podAt("kv-a", "10.244.1.2")}
	see := func(want string, pods []pod) trace.Membership {
		t.Helper()
		var seen trace.Membership
		sandboxtest.Eventually(t, want, func() error {
			if seen = s.look(t.Context(), func() []pod { return pods }); picture(seen) != want {
				return fmt.Errorf("it is %s", picture(seen))
			}
			return nil
		})
		return seen
	}
	seen := see("quorum 1/1, need 1 kv-a=leader/up", pods)
	if m := seen.Members[0]; m.ID == "" || m.Runs == "" || m.Runs == m.Requested || m.Term == 0 || m.Index == 0 || m.Size == 0 || seen.Program != "etcd "+m.Runs {
		t.Errorf("%+v", seen)
	}

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + w.where["10.244.1.2:2379"]}, DialTimeout: sandboxtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.MemberAddAsLearner(t.Context(), []string{"http://kv-b.kv.default.svc:2380"})
	if err := errors.Join(err, client.Close()); err != nil {
		t.Fatal(err)
	}
	pods = append(pods, podAt("kv-b", "10.244.1.3"))
	see("quorum 1/1, need 1 kv-a=leader/up kv-b=learner/pending", pods)

	var sum WriteSum
	results := make(chan Write, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	writer := Writer{Endpoint: Endpoint(s.name), Dial: w.dial, Interval: 5 * time.Millisecond, Timeout: 200 * time.Millisecond}
	done := make(chan error, 1)
	go func() { done <- writer.Run(ctx, func(w Write) { results <- w }) }()
	until := func(what string, condition func() bool) {
		t.Helper()
		for deadline := time.After(sandboxtest.Patience); !condition(); {
			select {
			case result := <-results:
				sum.Add(result)
			case <-deadline:
				t.Fatalf("never happened: %s; %+v", what, sum)
			}
		}
	}
	until("writes are acknowledged", func() bool { return sum.OK > 20 && !sum.Failing })
	before := sum.Failed
	stop()
	see("NO QUORUM 0/1, need 1 kv-a=voter/down(connection refused) kv-b=learner/pending", pods)
	until("writes fail", func() bool { return sum.Failing && sum.Failed > before+10 })
	see("NO QUORUM 0/1, need 1 kv-a=voter/absent kv-b=learner/absent", nil) // its pods are gone, too; but not what is known
	w.start(t, "10.244.1.2", "kv-a", peer, initial, embed.ClusterStateFlagExisting)
	see("quorum 1/1, need 1 kv-a=leader/up kv-b=learner/absent", pods[:1])
	ok := sum.OK
	until("writes are acknowledged again", func() bool { return !sum.Failing && sum.OK > ok+10 })
	if sum.Longest < 50*time.Millisecond || sum.Problem == "" {
		t.Errorf("%+v", sum)
	}
	cancel()
	for {
		select {
		case <-results:
			continue
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		break
	}
}

// TestPromoted looks at a learner that could not be asked at first and has been promoted since. An answer from before
// the promotion must not look like the loss of the quorum.
func TestPromoted(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts etcd")
	}
	takeTime(t)
	usual := reconnect
	t.Cleanup(func() { reconnect = usual })
	reconnect.Backoff.BaseDelay, reconnect.Backoff.MaxDelay = time.Hour, time.Hour // the old answer stays
	w := &world{where: map[string]string{}, dirs: map[string]string{}}
	a, b := freePort(t), freePort(t)
	initial := "kv-a=" + a.String()
	w.start(t, "10.244.1.2", "kv-a", a, initial, embed.ClusterStateFlagNew)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + w.where["10.244.1.2:2379"]}, DialTimeout: sandboxtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	answers := func(ip string) {
		t.Helper()
		sandboxtest.Eventually(t, ip+" answers others", func() error {
			_, err := client.Status(t.Context(), "http://"+w.where[ip+":2379"])
			return err
		})
	}
	s := w.observe(t)
	pods := []pod{podAt("kv-a", "10.244.1.2"), podAt("kv-b", "10.244.1.3")}
	see := func(want string) {
		t.Helper()
		sandboxtest.Eventually(t, want, func() error {
			if got := picture(s.look(t.Context(), func() []pod { return pods })); got != want {
				return fmt.Errorf("it is %s", got)
			}
			return nil
		})
	}
	answers("10.244.1.2")
	see("quorum 1/1, need 1 kv-a=leader/up kv-b=outsider/pending")

	added, err := client.MemberAddAsLearner(t.Context(), []string{b.String()})
	if err != nil {
		t.Fatal(err)
	}
	stop := w.start(t, "10.244.1.3", "kv-b", b, initial+",kv-b="+b.String(), embed.ClusterStateFlagExisting)
	answers("10.244.1.3")
	sandboxtest.Eventually(t, "the learner gets its vote", func() error {
		_, err := client.MemberPromote(t.Context(), added.Member.ID)
		return err
	})
	if first := s.look(t.Context(), func() []pod { return pods }); !first.Quorum() {
		t.Errorf("at the first look it is %s", picture(first))
	}
	see("quorum 2/2, need 2 kv-a=leader/up kv-b=voter/up")

	stop()
	sandboxtest.Eventually(t, "the quorum is lost", func() error {
		if seen := s.look(t.Context(), func() []pod { return pods }); seen.Quorum() {
			return fmt.Errorf("it is %s", picture(seen))
		}
		return nil
	})
}
