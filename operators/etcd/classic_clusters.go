package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// classicAtOnce is how many clusters get a pass at the same time: the published operator had a goroutine for each of
// them, so that one whose etcd does not answer keeps nobody waiting.
const classicAtOnce = 32

// classicClusters behaves as the operator published until 2020 did. Its flaws are the reason it is here, each is marked
// where it sits, and none of them is to be repaired: hardened is the repaired one.
//
// The published operator was older than controller-runtime. An informer gave it events, which it passed to a goroutine
// of each cluster; that made a pass when no event had come for a while. Here a reconcile is one of the two: if there is
// news of the EtcdCluster it is an event, else it is the timer, and then it is a pass.
type classicClusters struct {
	client  client.Client
	reader  client.Reader // of the API server itself: it keeps no copy of pods, and is not told of changes
	period  time.Duration
	wide    bool
	options Options

	mu       sync.Mutex
	clusters map[types.NamespacedName]*classicCluster
	seen     map[types.NamespacedName]*v1beta2.EtcdCluster // as the last event had it
}

// setupClassicClusters watches EtcdClusters and nothing else: what becomes of pods is found out in the next pass.
func setupClassicClusters(mgr ctrl.Manager, o Options) error {
	classicMetrics()
	r := &classicClusters{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), period: o.Period, wide: o.ClusterWide, options: o,
		clusters: map[types.NamespacedName]*classicCluster{}, seen: map[types.NamespacedName]*v1beta2.EtcdCluster{},
	}
	if r.options.Controller.MaxConcurrentReconciles == 0 {
		r.options.Controller.MaxConcurrentReconciles = classicAtOnce
	}
	return classicServe(mgr, o, ClusterController, v1beta2.EtcdClusterKind, func() error {
		return ctrl.NewControllerManagedBy(mgr).
			Named(ClusterController).
			For(&v1beta2.EtcdCluster{}).
			WithOptions(r.options.Controller).
			Complete(r)
	})
}

// Reconcile takes an event, or makes a pass. Every event begins the time until the next pass anew, also one that the
// operator's own write to the status brought about: a cluster that somebody touches more often than that is never
// looked after (E-10). It never fails: what goes wrong is a line in the log.
func (r *classicClusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	current := &v1beta2.EtcdCluster{}
	err := r.client.Get(ctx, req.NamespacedName, current)
	if apierrors.IsNotFound(err) {
		current, err = nil, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("get the EtcdCluster: %w", err)
	}
	news := r.news(ctx, req.NamespacedName, current)
	c := r.cluster(req.NamespacedName)
	if c == nil {
		return ctrl.Result{}, nil
	}
	if news {
		c.next = r.options.Clock.Now().Add(r.period)
	}
	return c.turn(ctx), nil
}

// classicEvent is the kind of event that an informer tells of.
type classicEvent int

const (
	classicAdded classicEvent = iota
	classicModified
	classicDeleted
)

// news tells whether there was an event of an EtcdCluster that its cluster was told of.
func (r *classicClusters) news(ctx context.Context, key types.NamespacedName, current *v1beta2.EtcdCluster) (told bool) {
	r.mu.Lock()
	last := r.seen[key]
	if current == nil {
		delete(r.seen, key)
	} else {
		r.seen[key] = current
	}
	r.mu.Unlock()
	if last != nil && (current == nil || current.UID != last.UID) {
		told = r.handle(ctx, classicDeleted, key, last.DeepCopy())
		last = nil
	}
	if current == nil || last != nil && last.ResourceVersion == current.ResourceVersion {
		return told
	}
	event := classicAdded
	if r.cluster(key) != nil {
		event = classicModified
	}
	return r.handle(ctx, event, key, current.DeepCopy())
}

func (r *classicClusters) cluster(key types.NamespacedName) *classicCluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clusters[key]
}

func (r *classicClusters) setCluster(key types.NamespacedName, c *classicCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c == nil {
		delete(r.clusters, key)
	} else {
		r.clusters[key] = c
	}
	classicClustersNumber.Set(float64(len(r.clusters)))
}

// handle passes an event on, unless the EtcdCluster is none of this operator's business, has failed, or is not valid.
// That holds for every event: an EtcdCluster that was made invalid cannot even be deleted as far as the operator is
// concerned. It keeps what it knows of it for ever, and takes a later one of the same name for the same (E-17).
func (r *classicClusters) handle(ctx context.Context, event classicEvent, key types.NamespacedName, cluster *v1beta2.EtcdCluster) (told bool) {
	if !r.managed(cluster) {
		return false
	}
	logger := log.FromContext(ctx)
	if cluster.Status.Phase == v1beta2.ClusterPhaseFailed {
		classicClustersFailed.Inc()
		if event == classicDeleted {
			r.setCluster(key, nil)
		} else {
			logger.Info("ignoring the event: the cluster has failed, delete its EtcdCluster")
		}
		return false
	}
	classicDefaults(cluster)
	if err := classicValidate(cluster); err != nil {
		logger.Info("ignoring the event: the spec is not valid", "why", err.Error())
		return false
	}
	switch event {
	case classicAdded:
		return r.add(ctx, key, cluster)
	case classicModified:
		classicClustersModified.Inc()
		r.cluster(key).take(ctx, cluster)
	case classicDeleted:
		classicClustersDeleted.Inc()
		r.setCluster(key, nil)
	}
	return true
}

// managed is the matrix of scopes.
func (r *classicClusters) managed(cluster *v1beta2.EtcdCluster) bool {
	scope, marked := cluster.Annotations[v1beta2.ScopeAnnotation]
	if r.wide {
		return scope == v1beta2.ScopeClusterwide
	}
	return !marked
}

func (r *classicClusters) add(ctx context.Context, key types.NamespacedName, cluster *v1beta2.EtcdCluster) (told bool) {
	if len(cluster.Name) > classicNameLimit {
		// Nobody but who reads the log learns of it (E-20).
		log.FromContext(ctx).Info("ignoring the event: the name is too long", "limit", classicNameLimit)
		return false
	}
	classicClustersCreated.Inc()
	c := newClassicCluster(r, cluster)
	r.setCluster(key, c)
	c.begin(ctx)
	return true
}

// classicNameLimit leaves room for a hyphen and ten characters in the 63 of a label.
const classicNameLimit = 63 - 10 - 1

// classicDefaults are those that the published operator set, into the object that it later wrote back with the status.
func classicDefaults(cluster *v1beta2.EtcdCluster) {
	spec := &cluster.Spec
	if spec.Repository == "" {
		spec.Repository = "quay.io/coreos/etcd"
	}
	if spec.Version == "" {
		spec.Version = "3.2.13"
	}
	spec.Version = strings.TrimLeft(spec.Version, "v")
	if pod := spec.Pod; pod != nil && pod.AntiAffinity && pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{ClusterLabel: cluster.Name}},
				TopologyKey:   corev1.LabelHostname,
			}},
		}}
	}
}

// classicValidate is all that the published operator looked at: any size goes, also 0, a negative or an even one (E-14),
// and any version.
func classicValidate(cluster *v1beta2.EtcdCluster) error {
	if tls := cluster.Spec.TLS; tls != nil && tls.Static != nil {
		if (tls.Static.OperatorSecret != "") != serverTLS(cluster) {
			return errors.New("TLS needs both operatorSecret and member.serverSecret, or none of them")
		}
	}
	if cluster.Spec.Pod == nil {
		return nil
	}
	for label := range cluster.Spec.Pod.Labels {
		if label == AppLabel || strings.HasPrefix(label, "etcd_") {
			return fmt.Errorf("the label %s of pods is the operator's", label)
		}
	}
	return nil
}
