package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// cluster creates the sample, changed.
func (env *testEnv) cluster(change func(*v1beta2.EtcdCluster)) *v1beta2.EtcdCluster {
	env.t.Helper()
	cluster := env.newCluster()
	if change != nil {
		change(cluster)
	}
	env.MustCreate(cluster)
	return cluster
}

func sized(size int) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) { c.Spec.Size = size }
}

// is tells whether a condition has a status and, unless that is empty, a reason, at the latest generation.
func is(cluster *v1beta2.EtcdCluster, kind string, status metav1.ConditionStatus, reason string) error {
	for _, c := range cluster.Status.Conditions {
		if c.Type != kind {
			continue
		}
		if c.Status == status && (reason == "" || c.Reason == reason) && c.ObservedGeneration == cluster.Generation {
			return nil
		}
		return fmt.Errorf("%s is %s, %s: %s", kind, c.Status, c.Reason, c.Message)
	}
	return fmt.Errorf("there is no condition %s", kind)
}

// settles waits until a cluster is as it should be: all members there, Ready, with a vote, and nothing under way. Its status
// has to be of the pods that are there: one of which a pod was just deleted still says what was before.
func (env *testEnv) settles(cluster *v1beta2.EtcdCluster) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, cluster.Name+" settles", func() error { return env.settled(cluster) })
}

func (env *testEnv) settled(cluster *v1beta2.EtcdCluster) error {
	env.t.Helper()
	env.MustGet(cluster)
	status := cluster.Status
	if got := len(status.Members.Ready); got != cluster.Spec.Size || status.Size != got || len(status.Members.Unready) > 0 {
		return fmt.Errorf("ready are %v, not ready %v, want %d: %+v", status.Members.Ready, status.Members.Unready, cluster.Spec.Size, status.Conditions)
	}
	pods := env.pods(cluster)
	for i := range pods {
		if !podIsReady(&pods[i]) || !slices.Contains(status.Members.Ready, pods[i].Name) {
			return fmt.Errorf("%s is not Ready, or the status does not have it yet: %v", pods[i].Name, status.Members.Ready)
		}
	}
	if len(pods) != len(status.Members.Ready) {
		return fmt.Errorf("there are %v, the status has %v", names(pods), status.Members.Ready)
	}
	for _, m := range status.MemberStatus {
		if !m.Healthy || m.Learner {
			return fmt.Errorf("%+v", m)
		}
	}
	return errors.Join(
		is(cluster, v1beta2.ConditionAvailable, metav1.ConditionTrue, "QuorumHealthy"),
		is(cluster, v1beta2.ConditionProgressing, metav1.ConditionFalse, ""),
		is(cluster, v1beta2.ConditionDegraded, metav1.ConditionFalse, ""),
	)
}

// inPieces runs operators of which each ends after its first write to something other than events, until something is true.
func (env *testEnv) inPieces(t *testing.T, cfg *rest.Config, done func() error) {
	t.Helper()
	for deadline := time.Now().Add(3 * sandboxtest.Patience); ; {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %v", err)
		}
		wrote := make(chan struct{})
		once := sync.OnceFunc(func() { close(wrote) })
		piece := rest.CopyConfig(cfg)
		piece.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return sandboxtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				answer, err := next.RoundTrip(r)
				if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/events") {
					once()
				}
				return answer, err
			})
		})
		stop := env.operateAs(t, piece, etcd.Options{})
		select {
		case <-wrote:
		case <-time.After(5 * time.Second): // it has nothing to write just now
		}
		stop()
	}
}

// becomes waits for a condition.
func (env *testEnv) becomes(cluster *v1beta2.EtcdCluster, kind string, status metav1.ConditionStatus, reason string) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, fmt.Sprintf("%s becomes %s=%s, %s", cluster.Name, kind, status, reason), func() error {
		env.MustGet(cluster)
		return is(cluster, kind, status, reason)
	})
}

// pods of a cluster that are not being deleted.
func (env *testEnv) pods(cluster *v1beta2.EtcdCluster) (pods []corev1.Pod) {
	env.t.Helper()
	var list corev1.PodList
	if err := env.List(env.t.Context(), &list, client.InNamespace(env.Name), client.MatchingLabels{etcd.ClusterLabel: cluster.Name}); err != nil {
		env.t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

func names(pods []corev1.Pod) map[string]bool {
	all := map[string]bool{}
	for _, pod := range pods {
		all[pod.Name] = true
	}
	return all
}

// kill deletes a pod at once, as if its node was gone.
func (env *testEnv) kill(pods ...corev1.Pod) {
	env.t.Helper()
	for i := range pods {
		if err := env.Delete(env.t.Context(), &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			env.t.Fatal(err)
		}
	}
}

// hasEvent tells whether there is an event of a reason.
func (env *testEnv) hasEvent(reason string) error {
	var list eventsv1.EventList
	if err := env.List(env.t.Context(), &list, client.InNamespace(env.Name)); err != nil {
		return err
	}
	for _, event := range list.Items {
		if event.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("there is no event %s", reason)
}

func (env *testEnv) wantEvents(reasons ...string) {
	env.t.Helper()
	for _, reason := range reasons {
		sandboxtest.Eventually(env.t, "an event "+reason, func() error { return env.hasEvent(reason) })
	}
}

// put writes a key through the Service for clients, however long that takes, and returns the revision since. It may be more
// than one further: what was not answered in time may have been written.
func (env *testEnv) put(cluster *v1beta2.EtcdCluster, key, value string) (revision int64) {
	env.t.Helper()
	store := env.store(env.t, cluster)
	defer func() { _ = store.Close() }()
	sandboxtest.Eventually(env.t, "write "+key, func() error {
		ctx, cancel := context.WithTimeout(env.t.Context(), 3*time.Second)
		defer cancel()
		answer, err := store.Put(ctx, key, value)
		if err == nil {
			revision = answer.Header.Revision
		}
		return err
	})
	return revision
}

// want reads a key through the Service for clients.
func (env *testEnv) want(cluster *v1beta2.EtcdCluster, key, value string) {
	env.t.Helper()
	store := env.store(env.t, cluster)
	defer func() { _ = store.Close() }()
	got := ""
	sandboxtest.Eventually(env.t, "read "+key, func() error {
		ctx, cancel := context.WithTimeout(env.t.Context(), 3*time.Second)
		defer cancel()
		answer, err := store.Get(ctx, key)
		if err == nil && len(answer.Kvs) == 1 {
			got = string(answer.Kvs[0].Value)
		}
		return err
	})
	if got != value {
		env.t.Errorf("%s is %q, want %q", key, got, value)
	}
}
