package durability_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestDurability has applications write and read through a cluster's Service while its members, its operator, the nodes
// and the control plane are killed: no acknowledged write is lost, no read is stale, and members change one at a time.
//
// OPERATOR_LAB_DURABILITY is how long that goes on, and OPERATOR_LAB_SEED repeats what a run did.
func TestDurability(t *testing.T) {
	sandboxtest.Long(t)
	length := setting(t, "OPERATOR_LAB_DURABILITY", time.ParseDuration, 10*time.Second)
	seed := setting(t, "OPERATOR_LAB_SEED", parseSeed, rand.Uint64()>>32)
	t.Logf("%v with seed %d; again with OPERATOR_LAB_SEED=%[2]d", length, seed)
	claim := &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}}
	for _, test := range []struct {
		name   string
		pod    *v1beta2.PodPolicy
		gentle bool
	}{
		{"volumes", claim, false},
		{"emptyDir", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newFixture(t)
			w.create(test.pod)
			w.endure(length, seed, test.gentle)
		})
	}
}

// endure is the run, and its judgement.
func (w *fixture) endure(length time.Duration, seed uint64, gentle bool) {
	w.Helper()
	history := newHistory()
	clients := w.clients(seed, history)
	membership := &membership{URL: w.url(), Dial: w.box.DialContext}
	//nolint:gosec // it is to be repeatable, not secret
	m := &monkey{fixture: w, chance: rand.New(rand.NewPCG(seed, 0)), gentle: gentle, done: map[string]int{}}

	ctx, cancel := context.WithTimeout(w.Context(), length)
	var all sync.WaitGroup
	all.Go(func() { clients.Run(ctx) })
	all.Go(func() { w.check(membership.Run(ctx)) })
	m.run(ctx)
	all.Wait()
	cancel()

	for _, name := range w.box.Nodes().Names() { // one may just have been lost
		w.check(w.box.Nodes().Return(name))
	}
	calm := time.Now()
	w.eventually("a whole cluster, when all is calm again", w.whole)
	w.Logf("whole again %v after the last fault", time.Since(calm).Round(time.Millisecond))
	w.eventually("all that was written", func() error {
		ctx, cancel := context.WithTimeout(w.Context(), patience)
		defer cancel()
		return clients.ReadAll(ctx)
	})
	s := history.summary()
	w.Logf("seed %d: %d writes acknowledged, %d of unknown outcome, %d reads; longest time without a write %v; members changed %d times (%d looks); %v",
		seed, s.Acknowledged, s.Unknown, s.Reads, s.LongestGap.Round(time.Millisecond), membership.Changes, membership.Looks, m.done)
	w.check(history.Check(patience, ""))
	w.check(membership.Err())
	if s.Acknowledged == 0 || s.Reads == 0 || membership.Looks == 0 {
		w.Error("nothing was written, read or looked at, so nothing is known")
	}
}
