package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters/status,verbs=patch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdrestores,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods;services;persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=etcd-operator,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=etcd-operator,resources=events,verbs=create;patch

// These are all the operator may do to clusters, and all it does. Of etcdclusters/finalizers it uses nothing, but where
// OwnerReferencesPermissionEnforcement is on, only who may update them may make objects that hold up their owner's
// deletion. Secrets are read by their names, never listed. The leases and the events in the operator's own namespace are
// those of leader election.

// fieldOwner owns the fields the operator writes.
const fieldOwner = client.FieldOwner("etcd-operator")

// The times between two looks at what no event tells of: etcd has no watch for its leader, its learners or its health.
const (
	learnerInterval = time.Second      // while a learner catches up
	changeInterval  = 2 * time.Second  // while something else is on its way
	steadyInterval  = 5 * time.Second  // when nothing is
	stuckInterval   = 10 * time.Second // when a person has to act
)

// hardenedClusters keeps clusters of etcd. A pass looks at what there is in the API and what etcd itself says, compares
// that with what should be, and does the one next thing about it. Nothing is remembered from one pass to the next, in
// status least of all: an operator that was killed, or whose status somebody wiped, goes on where it was.
//
// The one thing that neither pods nor etcd can tell when all of them are gone is that there ever was a cluster, whose
// data may come back. That is the birth, see there.
//
// It needs no finalizer: all it makes is in the namespace of the EtcdCluster and has it as its owner, so the garbage
// collector cleans up.
type hardenedClusters struct {
	clusterWriter
	members hardenedMembers
	written kit.LastWritten[*v1beta2.EtcdCluster]
}

// setupHardenedClusters watches all kinds it makes, and restores. Changes of an EtcdCluster other than to its spec and
// its annotations are left out, most of them being the operator's own to the status.
func setupHardenedClusters(mgr ctrl.Manager, o Options) error {
	writer := clusterWriter{
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		writer: kit.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Owner: fieldOwner},
		events: mgr.GetEventRecorder(string(fieldOwner)),
	}
	etcds := newEtcds(o.Dial)
	if err := mgr.Add(etcds); err != nil {
		return err
	}
	r := &hardenedClusters{clusterWriter: writer, members: hardenedMembers{clusterWriter: writer, options: o, etcds: etcds}}
	options := o.Controller
	if options.MaxConcurrentReconciles == 0 {
		options.MaxConcurrentReconciles = 4 // a cluster that does not answer must not hold up the others
	}
	changed := predicate.Or[client.Object](kit.SpecChanged(), predicate.AnnotationChangedPredicate{})
	sameName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, restore client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(restore)}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named(ClusterController).
		For(&v1beta2.EtcdCluster{}, builder.WithPredicates(changed)).
		Owns(&corev1.Pod{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.PersistentVolumeClaim{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&appsv1.Deployment{}).
		Watches(&v1beta2.EtcdRestore{}, sameName).
		WithOptions(options).
		Complete(r)
}

// clusterState holds what a pass has read of a cluster from the API and from etcd. Its methods decide, and change nothing
// outside of it.
type clusterState struct {
	cluster *v1beta2.EtcdCluster
	known   v1beta2.EtcdClusterStatus // what the status says already
	now     time.Time                 // when the pass began

	// Objects of somebody else are left out.
	peers, clients corev1.Service
	budget         policyv1.PodDisruptionBudget
	pods           []*corev1.Pod
	claims         []*corev1.PersistentVolumeClaim
	proxies        appsv1.Deployment
	proxyService   corev1.Service
	proxyPods      []*corev1.Pod
	restore        *v1beta2.EtcdRestore
	birth          birth
	tls            *clientTLS
	view           view
	members        memberList
}

// clusterPass is one look at a cluster, and what came of it: what the status is to say, and when to look again.
type clusterPass struct {
	clusterState

	taken    []string // names that somebody else has
	doing    []progress
	troubles []trouble
	moved    bool // something was changed, so that the view is out of date
	wait     time.Duration
}

// clusterStep is one part of a pass. A failing one does not keep the next from its turn.
type clusterStep func(context.Context, *clusterPass) error

// Reconcile does the next thing about a cluster, then says how it is.
func (r *hardenedClusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &v1beta2.EtcdCluster{}
	if err := r.client.Get(ctx, req.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Forget(req.NamespacedName)
			r.members.etcds.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the EtcdCluster: %w", err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		r.members.etcds.forget(req.NamespacedName)
		return ctrl.Result{}, nil // the garbage collector takes everything away
	}

	p := r.newPass(cluster)
	if err := r.look(ctx, p); err != nil {
		return ctrl.Result{}, err // without knowing what there is there is no status to write
	}
	steps := []clusterStep{r.keepBirth, r.markVoters, r.keepServices, r.keepBudget, r.keepProxies, r.members.judge, r.members.tend}
	if p.cluster.Spec.Paused || !p.specValid() {
		steps = nil
		if p.birth.Formed && !p.view.quorum && !p.tls.missing() {
			steps = []clusterStep{func(ctx context.Context, p *clusterPass) error {
				_, err := r.members.tellOfLoss(ctx, p)
				return err
			}}
		}
	}
	var errs []error
	for _, step := range steps {
		errs = append(errs, p.heed(step(ctx, p)))
	}
	if p.moved {
		// Status tells what is, not what was before this pass. The API's part of it comes with an event.
		errs = append(errs, r.members.lookAtEtcd(ctx, p))
	}
	errs = append(errs, r.writeStatus(ctx, p))
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.wait}, nil
}

// newPass begins a look at a cluster, with the latest status that is known.
func (r *hardenedClusters) newPass(cluster *v1beta2.EtcdCluster) *clusterPass {
	latest := r.written.Latest(cluster)
	if latest.Generation == cluster.Generation {
		cluster.ResourceVersion = latest.ResourceVersion // it goes with the status that is written next
	}
	return &clusterPass{
		clusterState: clusterState{cluster: cluster, known: latest.Status, now: r.members.options.Clock.Now()},
		wait:         steadyInterval,
	}
}

// heed notes what the API server refused for reasons that a person has to see, and returns all other errors.
func (p *clusterPass) heed(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		p.lookAgain(learnerInterval) // somebody was faster: look again
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		p.trouble(ReasonRejected, "the API server refuses what is needed: %v", err)
		p.lookAgain(stuckInterval)
		return nil
	}
	return err
}

// lookAgain asks for the next pass, unless it comes sooner anyway.
func (p *clusterPass) lookAgain(in time.Duration) {
	if p.wait == steadyInterval || in < p.wait {
		p.wait = in
	}
}

// look reads what there is. It writes nothing.
func (r *hardenedClusters) look(ctx context.Context, p *clusterPass) error {
	if err := r.lookAtObjects(ctx, p); err != nil {
		return err
	}
	p.birth = latestBirth(&p.peers, &p.clients, &p.budget)
	if err := r.readTLS(ctx, p); err != nil {
		return err
	}
	return r.members.lookAtEtcd(ctx, p)
}

func (r *hardenedClusters) lookAtObjects(ctx context.Context, p *clusterPass) error {
	for _, o := range []struct {
		name string
		into client.Object
	}{
		{peerService(p.cluster), &p.peers},
		{clientService(p.cluster), &p.clients},
		{budgetName(p.cluster), &p.budget},
		{proxyName(p.cluster), &p.proxies},
		{proxyName(p.cluster), &p.proxyService},
	} {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: p.cluster.Namespace, Name: o.name}, o.into)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get %T %s: %w", o.into, o.name, err)
		}
	}
	// By owner and not by label, which anybody can take off.
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(p.cluster.Namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		switch pod := &pods.Items[i]; {
		case p.mine(pod):
			p.pods = append(p.pods, pod)
		case pod.Labels[ProxyLabel] == p.cluster.Name:
			p.proxyPods = append(p.proxyPods, pod)
		}
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.client.List(ctx, &claims, client.InNamespace(p.cluster.Namespace)); err != nil {
		return fmt.Errorf("list volume claims: %w", err)
	}
	for i := range claims.Items {
		if p.mine(&claims.Items[i]) {
			p.claims = append(p.claims, &claims.Items[i])
		}
	}
	restore := &v1beta2.EtcdRestore{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(p.cluster), restore)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the EtcdRestore: %w", err)
	}
	if err == nil && restore.DeletionTimestamp.IsZero() {
		p.restore = restore
	}
	return nil
}

// mine tells whether this EtcdCluster, and not an earlier one of its name, controls an object. Classic's claims have it as
// an owner that is no controller.
func (p *clusterState) mine(obj client.Object) bool {
	if obj.GetUID() == "" {
		return false
	}
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return owner.UID == p.cluster.UID
	}
	for _, owner := range obj.GetOwnerReferences() {
		if owner.UID == p.cluster.UID {
			return true
		}
	}
	return false
}

// claim returns the claim of a member; nil if it has none.
func (p *clusterState) claim(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range p.claims {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// specValid tells whether a spec can be followed that a laxer definition than ours may have let in.
func (p *clusterPass) specValid() bool {
	spec := p.cluster.Spec
	if spec.Size < 1 || spec.Size > 7 {
		p.trouble(ReasonSpecInvalid, "spec.size is %d: ask for 1 to 7 members; nothing is done until then", spec.Size)
		return false
	}
	if _, err := parseVersion(versionOf(p.cluster)); err != nil && len(p.pods) == 0 {
		p.trouble(ReasonSpecInvalid, "spec.version: %v; nothing is done until then", err)
		return false
	}
	return true
}
