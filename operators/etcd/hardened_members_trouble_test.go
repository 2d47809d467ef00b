package etcd_test

import (
	cryptotls "crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/certificate"
	"github.com/operator-lab/operator-lab/sandbox/node"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// stuckVersion is one whose image cannot be pulled.
const stuckVersion = "3.2.99"

// TestStuckUpgrade: the first member that does not come up is the last that is touched, and setting the version back
// undoes it.
func TestStuckUpgrade(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(nil)
	env.put(cluster, "a", "1")
	env.MustUpdate(cluster, func() { cluster.Spec.Version = stuckVersion })
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "UpgradeStuck")
	env.becomes(cluster, v1beta2.ConditionAvailable, metav1.ConditionTrue, "")
	touched := 0
	for _, pod := range env.pods(cluster) {
		if strings.HasSuffix(pod.Spec.Containers[0].Image, stuckVersion) {
			touched++
		}
	}
	if touched != 1 {
		t.Errorf("%d members were upgraded", touched)
	}
	env.wantEvents("MemberUpgraded")
	env.put(cluster, "b", "2")
	env.MustUpdate(cluster, func() { cluster.Spec.Version = "3.2.13" })
	env.settles(cluster)
	env.want(cluster, "a", "1")
	env.want(cluster, "b", "2")
}

// TestAloneAndKilled: the member that is left alone knows so also when it is killed, before anybody has written again.
func TestAloneAndKilled(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(func(c *v1beta2.EtcdCluster) { c.Spec.Size = 2 })
	env.put(cluster, "a", "1")
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 1 })
	env.settles(cluster)
	alone := env.pods(cluster)[0]
	match := node.Match{Namespace: alone.Namespace, Pod: alone.Name}
	if killed, err := env.lab.Nodes().KillContainers(match, node.ReasonError); err != nil || len(killed) != 1 {
		t.Fatalf("killed %v: %v", killed, err)
	}
	sandboxtest.Eventually(t, "the member is back", func() error {
		env.MustGet(&alone)
		for _, c := range alone.Status.ContainerStatuses {
			if c.RestartCount > 0 && c.Ready {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", alone.Status.ContainerStatuses)
	})
	env.settles(cluster)
	env.want(cluster, "a", "1")
}

// TestQuietCluster: a new member is sent a snapshot, and then nobody writes anything. It gets its vote all the same.
func TestQuietCluster(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(func(c *v1beta2.EtcdCluster) {
		c.Spec.Size = 1
		c.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_SNAPSHOT_COUNT", Value: "100"}}}
	})
	// etcd keeps the last 5000 entries for members that need only these; it proposes nothing when it is 5000 behind.
	store := env.store(t, cluster)
	var writers sync.WaitGroup
	for writer := range 64 {
		writers.Go(func() {
			for n := range 100 {
				if _, err := store.Put(patient(t), strconv.Itoa(writer), strconv.Itoa(n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 2 })
	env.settles(cluster)
	env.want(cluster, "63", "99")
}

// TestStuckBirth: the very first image cannot be pulled; another version heals it.
func TestStuckBirth(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	cluster := env.cluster(func(c *v1beta2.EtcdCluster) { c.Spec.Size, c.Spec.Version = 1, stuckVersion })
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	env.MustUpdate(cluster, func() { cluster.Spec.Version = "3.2.13" })
	env.settles(cluster)
}

// TestFirstMemberLost: none of three first members can start yet, and one of them is gone with its data. It may have
// voted, so it does not come back under its name: all begin anew, as often as that happens, until there is a quorum.
func TestFirstMemberLost(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	cluster := env.cluster(func(c *v1beta2.EtcdCluster) { c.Spec.Version = stuckVersion })
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	first := env.pods(cluster)
	if len(first) != 3 {
		t.Fatalf("the first members are %v", names(first))
	}
	env.kill(first[1])
	begunAnew := func(size int, not ...corev1.Pod) (others []corev1.Pod) {
		sandboxtest.Eventually(t, "all first members are others", func() error {
			others = env.pods(cluster)
			for _, pod := range others {
				if names(not)[pod.Name] {
					return fmt.Errorf("%s is still there", pod.Name)
				}
			}
			if len(others) != size {
				return fmt.Errorf("there are %v", names(others))
			}
			return nil
		})
		return others
	}
	second := begunAnew(3, first...)
	env.wantEvents("BegunAnew")
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 2 })
	third := begunAnew(2, append(first, second...)...)
	env.MustUpdate(cluster, func() { cluster.Spec.Version = "3.2.13" })
	env.settles(cluster)
	if now := env.pods(cluster); !maps.Equal(names(now), names(third)) {
		t.Errorf("the members are %v, want the first ones, %v", names(now), names(third))
	}
	env.put(cluster, "a", "1")
}

// TestFirstMembersReturn: two of three first members are gone, and their data are in claims. They come back, and nothing
// begins anew.
func TestFirstMembersReturn(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	cluster := env.cluster(func(c *v1beta2.EtcdCluster) { claimed(c); c.Spec.Version = stuckVersion })
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	first := env.pods(cluster)
	env.kill(first[:2]...)
	env.MustUpdate(cluster, func() { cluster.Spec.Version = "3.2.13" })
	env.settles(cluster)
	if now := env.pods(cluster); !maps.Equal(names(now), names(first)) {
		t.Errorf("the members are %v, were %v", names(now), names(first))
	}
}

// TestKilledAtBirth kills one of three first members with its data, at each step on the way to a cluster. Whatever becomes
// of that, there is one cluster in the end: its members agree on what they have, and none of them is the one that was lost.
func TestKilledAtBirth(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	env.operate(t, etcd.Options{})
	for name, when := range map[string]func(corev1.Pod) bool{
		"made":      func(corev1.Pod) bool { return true },
		"let-go":    func(pod corev1.Pod) bool { return len(pod.Spec.SchedulingGates) == 0 },
		"scheduled": func(pod corev1.Pod) bool { return pod.Spec.NodeName != "" },
		"runs":      func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning },
		"votes":     func(pod corev1.Pod) bool { return pod.Labels[etcd.VotingLabel] != "" },
	} {
		cluster := env.cluster(func(c *v1beta2.EtcdCluster) { c.Name = name })
		var lost corev1.Pod
		sandboxtest.Eventually(t, "a first member of "+name, func() error {
			for _, pod := range env.pods(cluster) {
				if when(pod) {
					lost = pod
					return nil
				}
			}
			return errors.New("there is none yet")
		})
		env.kill(lost)
		sandboxtest.Eventually(t, name+" settles without it", func() error {
			for _, pod := range env.pods(cluster) {
				if pod.UID == lost.UID || pod.Name == lost.Name && len(lost.Spec.SchedulingGates) == 0 {
					return fmt.Errorf("%s is there", pod.Name)
				}
			}
			return env.settled(cluster)
		})
		revision := env.put(cluster, "a", "1")
		store := env.store(t, cluster)
		members, err := store.MemberList(patient(t))
		if err != nil || len(members.Members) != 3 {
			t.Fatalf("%s: etcd knows %v, %v", name, members, err)
		}
		sums := map[uint32]string{}
		for _, m := range members.Members {
			answer, err := env.storeAt(t, m.ClientURLs[0]).HashKV(patient(t), m.ClientURLs[0], revision)
			if err != nil {
				t.Fatal(err)
			}
			sums[answer.Hash] = m.Name
		}
		if len(sums) != 1 {
			t.Errorf("%s: the members do not have the same: %v", name, sums)
		}
		env.MustDelete(cluster)
	}
}

// authority signs certificates.
type authority struct{ *certificate.Authority }

func newAuthority(t *testing.T) authority {
	t.Helper()
	a, err := certificate.NewAuthority("etcd-ca")
	if err != nil {
		t.Fatal(err)
	}
	return authority{a}
}

func (a authority) pair(t *testing.T, hosts ...string) (cert, key []byte) {
	t.Helper()
	cert, key, err := a.Issue(certificate.Subject{Name: "etcd", Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a authority) secret(t *testing.T, namespace, name, prefix string, hosts []string) *corev1.Secret {
	t.Helper()
	cert, key := a.pair(t, hosts...)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{prefix + ".crt": cert, prefix + ".key": key, prefix + "-ca.crt": a.PEM()},
	}
}

func (a authority) client(t *testing.T) *cryptotls.Config {
	t.Helper()
	pair, err := cryptotls.X509KeyPair(a.pair(t))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return &cryptotls.Config{Certificates: []cryptotls.Certificate{pair}, RootCAs: pool, MinVersion: cryptotls.VersionTLS12}
}

// TestGhost: E-05 and E-11. Members that were added and never came are recognised: one more than needed is removed, one
// that is needed gets its pod.
func TestGhost(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	cluster, stop := env.run(sized(1))
	env.put(cluster, "a", "1")
	stop()
	ghost := func(name string) {
		url := "http://" + name + "." + cluster.Name + "." + env.Name + ".svc:2380"
		if _, err := env.store(t, cluster).MemberAddAsLearner(patient(t), []string{url}); err != nil {
			t.Fatal(err)
		}
	}
	ghost(cluster.Name + "-ghost")
	stop = env.operate(t, etcd.Options{})
	sandboxtest.Eventually(t, "the ghost is gone", func() error {
		list, err := env.store(t, cluster).MemberList(patient(t))
		if err == nil && len(list.Members) != 1 {
			err = fmt.Errorf("there are %v", list.Members)
		}
		return err
	})
	stop()
	ghost(cluster.Name + "-needed")
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 2 })
	env.operate(t, etcd.Options{})
	env.settles(cluster)
	if !names(env.pods(cluster))[cluster.Name+"-needed"] {
		t.Errorf("the pods are %v", names(env.pods(cluster)))
	}
	env.want(cluster, "a", "1")
}

// TestHalfAdded: what E-04 leaves. A member was added with a vote, its pod never came, so there is no quorum; making its
// pod is all that it takes.
func TestHalfAdded(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, stop := env.run(sized(1))
	env.put(cluster, "a", "1")
	stop()
	name := cluster.Name + "-half"
	url := "http://" + name + "." + cluster.Name + "." + env.Name + ".svc:2380"
	if _, err := env.store(t, cluster).MemberAdd(patient(t), []string{url}); err != nil {
		t.Fatal(err)
	}
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 2 })
	env.operate(t, etcd.Options{})
	env.settles(cluster)
	env.want(cluster, "a", "1")
}

// TestConverged: an operator that looks at a cluster that is as it should be writes nothing; nor does one that comes new.
// It is not parallel: a member that is busy with the others' may answer too late, and that is written down.
func TestConverged(t *testing.T) {
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, stop := env.run(nil)
	stop()
	w := &writes{}
	cfg := env.operatorConfig(t, etcd.Hardened)
	cfg.Wrap(w.wrap)
	env.operateAs(t, cfg, etcd.Options{})
	// Somebody else's change shows that the operator has looked at everything.
	sandboxtest.Eventually(t, "the operator reads", func() error {
		if w.count() == 0 && w.reads() < 6 {
			return errors.New("not yet")
		}
		return nil
	})
	other := env.newCluster()
	other.Name, other.Spec.Size = "other", 1
	env.MustCreate(other)
	env.settles(other)
	for _, path := range w.about(cluster.Name) {
		t.Errorf("it wrote %s", path)
	}
}

// writes are the requests of an operator that change something.
type writes struct {
	mu    sync.Mutex
	paths []string
	read  int
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return sandboxtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		if r.Method == http.MethodGet {
			w.read++
		} else {
			w.paths = append(w.paths, r.Method+" "+r.URL.Path)
		}
		w.mu.Unlock()
		return next.RoundTrip(r)
	})
}

func (w *writes) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.paths)
}

func (w *writes) reads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read
}

func (w *writes) about(name string) (about []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range w.paths {
		if strings.Contains(path, name) {
			about = append(about, path)
		}
	}
	return about
}

// TestKilledAfterEachWrite runs an operator that ends after each of its writes, until the cluster is there, has lost a
// member and has another one.
func TestKilledAfterEachWrite(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cfg := env.operatorConfig(t, etcd.Hardened)
	cluster := env.cluster(nil)
	env.inPieces(t, cfg, func() error { return env.settled(cluster) })
	peers := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: cluster.Name}}
	env.MustGet(peers)
	if record := peers.Annotations[etcd.BirthAnnotation]; !strings.Contains(record, `"life":1,`) {
		t.Errorf("the end of an operator had the first members begin anew: %s", record)
	}
	env.put(cluster, "a", "1")
	old := env.pods(cluster)
	env.kill(old[0])
	env.inPieces(t, cfg, func() error {
		if err := env.settled(cluster); err != nil {
			return err
		}
		if names(env.pods(cluster))[old[0].Name] {
			return errors.New("the old member is still there")
		}
		return nil
	})
	env.want(cluster, "a", "1")
	members, err := env.store(t, cluster).MemberList(patient(t))
	if err != nil || len(members.Members) != 3 {
		t.Errorf("etcd knows %v, %v", members, err)
	}
}

// TestLabelsTakenOff: somebody takes the labels off a member by which the operator knows its life. It is no stranger for
// that: the labels come back, and the member was never gone.
func TestLabelsTakenOff(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(sized(1))
	env.put(cluster, "a", "1")
	pod := &env.pods(cluster)[0]
	env.MustUpdate(pod, func() { pod.Labels = nil })
	sandboxtest.Eventually(t, "the labels are back", func() error {
		env.MustGet(pod)
		for _, label := range []string{etcd.TokenLabel, etcd.ClusterLabel, etcd.VotingLabel} {
			if pod.Labels[label] == "" {
				return fmt.Errorf("there is no label %s: %v", label, pod.Labels)
			}
		}
		return nil
	})
	env.settles(cluster)
	env.want(cluster, "a", "1")
	if now := env.pods(cluster); len(now) != 1 || now[0].UID != pod.UID {
		t.Errorf("the members are %v, were %s", names(now), pod.Name)
	}
}
