package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// classicCluster is all that the operator knows of one cluster, in its memory. It is used by one reconcile at a time.
type classicCluster struct {
	*classicClusters
	// cluster is the EtcdCluster as the last event had it, or as the API server returned it to the last write.
	cluster *v1beta2.EtcdCluster
	// status is changed in memory and then written. When the operator starts it takes it from the EtcdCluster (E-15).
	status classicStatus
	// members as etcd has them, or so the operator believes. It is nil when it has taken over a cluster.
	members classicMembers
	// failed is the error of the last pass; nil if there was none. After an error the next pass asks etcd for its members.
	failed error
	// next is when there is a pass, if there is no event before.
	next time.Time
	// done: the cluster has failed, and nothing will be done about it any more, except to write that down while reporting.
	done, reporting bool

	tls *tls.Config
	// naming and choice are two, so that with a seed the choices do not depend on how many names were tried.
	naming, choice *rand.Rand
}

func newClassicCluster(r *classicClusters, cluster *v1beta2.EtcdCluster) *classicCluster {
	return &classicCluster{
		classicClusters: r,
		cluster:         cluster,
		status:          classicStatus{*cluster.Status.DeepCopy(), r.options.Clock},
		naming:          classicRandom(r.options.Seed, "names of "+cluster.Namespace+"/"+cluster.Name),
		choice:          classicRandom(r.options.Seed, "choices"),
	}
}

// classicRandom is another one each time if the seed is 0, else the same for the same use.
func classicRandom(seed int64, use string) *rand.Rand {
	if seed == 0 {
		return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(use)) // a hash takes everything
	return rand.New(rand.NewPCG(uint64(seed), sum.Sum64()))
}

// errClassicCreating fails a cluster whose operator ended while it created it (E-12).
var errClassicCreating = errors.New("cluster failed to be created")

// begin goes by the phase that the status has, and by nothing else: whether there are pods is not asked. Without a phase
// the cluster is new, and gets a first member that knows nothing of any other. So a cluster whose status has got lost
// is begun anew when the operator starts, and its pods, which nobody expects, are deleted in the next pass (E-15).
func (c *classicCluster) begin(ctx context.Context) {
	logger := log.FromContext(ctx)
	if err := c.setup(ctx); err != nil {
		logger.Error(err, "the cluster could not be set up")
		c.done = true
		c.status.Reason, c.status.Phase = err.Error(), v1beta2.ClusterPhaseFailed
		if err := c.writeStatus(ctx); err != nil {
			logger.Error(err, "the phase could not be written", "phase", c.status.Phase)
		}
		return
	}
	// Once, here. If it fails, or if one is deleted later, the cluster has no Service until the operator starts anew (E-16).
	if err := c.createServices(ctx); err != nil {
		logger.Error(err, "the Services could not be created")
	}
	c.status.ServiceName, c.status.ClientPort = clientService(c.cluster), clientPort
	c.status.Phase = v1beta2.ClusterPhaseRunning
	if err := c.writeStatus(ctx); err != nil {
		logger.Error(err, "the phase could not be written", "phase", c.status.Phase)
	}
	logger.Info("looking after the cluster from now on")
}

func (c *classicCluster) setup(ctx context.Context) error {
	switch c.status.Phase {
	case v1beta2.ClusterPhaseNone, v1beta2.ClusterPhaseRunning:
	case v1beta2.ClusterPhaseCreating:
		return errClassicCreating
	default:
		return fmt.Errorf("unexpected phase %q", c.status.Phase)
	}
	if serverTLS(c.cluster) {
		var err error
		if c.tls, err = classicTLS(ctx, c.reader, c.cluster.Namespace, staticTLS(c.cluster).OperatorSecret); err != nil {
			return err
		}
	}
	if c.status.Phase == v1beta2.ClusterPhaseRunning {
		return nil
	}
	c.status.Phase = v1beta2.ClusterPhaseCreating
	if err := c.writeStatus(ctx); err != nil {
		return fmt.Errorf("write the phase %s: %w", c.status.Phase, err)
	}
	c.status.setScaling(0, c.cluster.Spec.Size)
	if err := c.createSeed(ctx); err != nil {
		return err
	}
	c.status.Size = 1
	return nil
}

// take handles an update of the EtcdCluster. Most of its spec counts for later members only (E-18).
func (c *classicCluster) take(ctx context.Context, cluster *v1beta2.EtcdCluster) {
	old := c.cluster.Spec
	c.cluster = cluster
	if old.Size != cluster.Spec.Size || old.Version != cluster.Spec.Version || old.Paused != cluster.Spec.Paused {
		log.FromContext(ctx).Info("the spec has changed",
			"size", cluster.Spec.Size, "version", cluster.Spec.Version, "paused", cluster.Spec.Paused)
	}
}

// turn makes a pass if it is time for one.
func (c *classicCluster) turn(ctx context.Context) ctrl.Result {
	now := c.options.Clock.Now()
	switch {
	case c.done && !c.reporting:
		return ctrl.Result{}
	case now.Before(c.next):
		return ctrl.Result{RequeueAfter: c.next.Sub(now)}
	case c.reporting:
		c.report(ctx)
	default:
		c.pass(ctx)
	}
	c.next = c.options.Clock.Now().Add(c.period)
	return ctrl.Result{RequeueAfter: c.period}
}

// pass looks after the cluster once.
func (c *classicCluster) pass(ctx context.Context) {
	logger := log.FromContext(ctx)
	// A pause ends the pass before the status is written, so nobody ever sees this (E-07).
	c.status.ControlPaused = c.cluster.Spec.Paused
	if c.cluster.Spec.Paused {
		logger.Info("paused: nothing is done")
		return
	}
	began := c.options.Clock.Now()
	defer func() {
		classicDuration.WithLabelValues(c.cluster.Name).Observe(c.options.Clock.Since(began).Seconds())
	}()
	running, pending, err := c.pods(ctx)
	switch {
	case err != nil:
		classicFailure("list pods")
		logger.Error(err, "the pods could not be listed")
		return
	case len(pending) > 0:
		classicFailure("not all pods are running")
		logger.Info("waiting for pods", "running", classicNames(running), "pending", classicNames(pending))
		return
	case len(running) == 0:
		// And so it goes on, whatever the status says (E-02).
		logger.Info("all etcd pods are dead.")
	default:
		c.lookAfter(ctx, running)
	}
	if c.failed == nil {
		return
	}
	classicFailure(classicReason(c.failed))
	if fatal := (&classicFatal{}); errors.As(c.failed, &fatal) {
		logger.Error(c.failed, "the cluster has failed")
		c.status.Reason = c.failed.Error()
		c.done, c.reporting = true, true
		c.report(ctx)
	}
}

// lookAfter compares the pods that run with the members there should be, and notes what it finds in the status. When
// something fails, such as a lost quorum, the status stays as it was: Running, Available (E-01).
func (c *classicCluster) lookAfter(ctx context.Context, running classicPods) {
	logger := log.FromContext(ctx)
	if c.failed != nil || c.members == nil {
		if c.failed = c.askMembers(ctx, running); c.failed != nil {
			logger.Error(c.failed, "the members could not be listed")
			return
		}
	}
	if c.failed = c.reconcile(ctx, running); c.failed != nil {
		logger.Error(c.failed, "the cluster could not be reconciled")
		return
	}
	c.status.setMembers(running)
	if err := c.writeStatus(ctx); err != nil {
		logger.Error(err, "the status could not be written")
	}
}

// report writes down that the cluster has failed, as often as it takes.
func (c *classicCluster) report(ctx context.Context) {
	c.status.Phase = v1beta2.ClusterPhaseFailed
	c.reporting = !c.reported(ctx, log.FromContext(ctx))
}

func (c *classicCluster) reported(ctx context.Context, logger logr.Logger) bool {
	err := c.writeStatus(ctx)
	if err == nil || classicGone(err) {
		return true
	}
	logger.Error(err, "the phase could not be written", "phase", c.status.Phase)
	if classicConflict(err) {
		if err := c.reload(ctx); err != nil {
			logger.Error(err, "the EtcdCluster could not be read")
		}
	}
	return false
}

// memberName names a new member.
func (c *classicCluster) memberName() string {
	// As Kubernetes' own: no vowels, nothing that looks like something else.
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	name := make([]byte, 10)
	for i := range name {
		name[i] = letters[c.naming.IntN(len(letters))]
	}
	return c.cluster.Name + "-" + string(name)
}

// classicComponent is who the events are from.
func classicComponent() string { return cmp.Or(classicPodName(), "etcd-operator") }
