// Package members observes the members of etcd clusters in a sandbox: it asks each for its status and combines the
// answers into one description of the cluster. A [Writer] writes to a cluster again and again, as an application does.
//
// Clusters are found by the labels of their pods, and by their EtcdClusters.
package members

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// The type of the clusters' objects.
const (
	APIVersion = "etcd.database.coreos.com/v1beta2"
	Kind       = "EtcdCluster"
)

var etcdClusters = schema.GroupVersionResource{Group: "etcd.database.coreos.com", Version: "v1beta2", Resource: "etcdclusters"}

// Labels and annotations of pods.
const (
	appLabel          = "app"
	appName           = "etcd"
	clusterLabel      = "etcd_cluster"
	versionAnnotation = "etcd.version"
)

// userAgent is the lab's own, whose requests to the API server are not recorded in the journal.
const userAgent = "operator-lab"

// DefaultInterval is the default time between two looks at the members.
const DefaultInterval = 500 * time.Millisecond

// answerTime is the time limit for a member's answer.
var answerTime = time.Second

// Dial connects to pods and Services by their addresses and names in the cluster.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Options of an [Observer].
type Options struct {
	// Config is the configuration of an administrator.
	Config *rest.Config
	// Dial reaches the members.
	Dial Dial
	// Interval between two looks. Default: [DefaultInterval]. A change of a pod causes a look at once.
	Interval time.Duration
}

// Observer observes the members of all etcd clusters. All methods may be called from any goroutine.
type Observer struct {
	options  Options
	kube     kubernetes.Interface
	pods     corelisters.PodLister
	clusters cache.GenericLister
	begin    func(ctx context.Context)
	synced   []cache.InformerSynced
	poke     chan struct{}

	mu     sync.Mutex
	stores map[types.NamespacedName]*store
}

// New returns an observer. It does nothing before [Observer.Run].
func New(o Options) (*Observer, error) {
	config := rest.CopyConfig(o.Config)
	config.UserAgent = userAgent
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	b := &Observer{options: o, kube: kube, poke: make(chan struct{}, 1), stores: map[types.NamespacedName]*store{}}
	own := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) {
		l.LabelSelector = labels.Set{appLabel: appName}.String()
	}))
	theirs := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	pods, clusters := own.Core().V1().Pods(), theirs.ForResource(etcdClusters)
	b.pods, b.clusters = pods.Lister(), clusters.Lister()
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), clusters.Informer()} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { b.hurry() }, UpdateFunc: func(any, any) { b.hurry() }, DeleteFunc: func(any) { b.hurry() },
		}); err != nil {
			return nil, err
		}
	}
	b.synced = []cache.InformerSynced{pods.Informer().HasSynced}
	b.begin = func(ctx context.Context) {
		own.Start(ctx.Done())
		theirs.Start(ctx.Done())
	}
	return b, nil
}

// hurry causes a look soon.
func (b *Observer) hurry() {
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

// leastPause is the least time between two looks when pods change again and again.
const leastPause = 50 * time.Millisecond

// Run observes until ctx ends, and calls report with every look at each cluster, one at a time, also if nothing has
// changed.
func (b *Observer) Run(ctx context.Context, report func(cluster types.NamespacedName, seen trace.Membership)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.begin(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
		return fmt.Errorf("look at the pods: %w", context.Cause(ctx))
	}
	defer b.leave()
	tick := time.NewTicker(cmp.Or(b.options.Interval, DefaultInterval))
	defer tick.Stop()
	for {
		b.look(ctx, report)
		rest := time.NewTimer(leastPause)
		select {
		case <-ctx.Done():
			rest.Stop()
			return ctx.Err()
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-b.poke:
		}
	}
}

// leave closes all connections.
func (b *Observer) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, s := range b.stores {
		s.close()
		delete(b.stores, name)
	}
}

// look asks all members of all clusters, separately for each cluster.
func (b *Observer) look(ctx context.Context, report func(types.NamespacedName, trace.Membership)) {
	pods, err := b.listPods()
	if err != nil {
		return // the list of a selector that selects everything cannot fail
	}
	b.mu.Lock()
	for name := range pods {
		if b.stores[name] == nil {
			b.stores[name] = &store{observer: b, name: name, askers: map[types.UID]*asker{}}
		}
	}
	for name := range b.listClusters() {
		if b.stores[name] == nil {
			b.stores[name] = &store{observer: b, name: name, askers: map[types.UID]*asker{}}
		}
	}
	all := maps.Clone(b.stores)
	b.mu.Unlock()
	var looks sync.WaitGroup
	var telling sync.Mutex
	for name, s := range all {
		looks.Go(func() {
			seen := s.look(ctx, func() []pod {
				now, err := b.listPods()
				if err != nil {
					return nil // the list of a selector that selects everything cannot fail
				}
				return now[name]
			})
			if ctx.Err() != nil {
				return
			}
			telling.Lock()
			defer telling.Unlock()
			report(name, seen)
			if seen.Gone && len(pods[name]) == 0 {
				b.forget(name)
			}
		})
	}
	looks.Wait()
}

func (b *Observer) forget(name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.stores[name]; s != nil {
		s.close()
		delete(b.stores, name)
	}
}

// listPods returns the pods of each cluster.
func (b *Observer) listPods() (map[types.NamespacedName][]pod, error) {
	list, err := b.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	byCluster := map[types.NamespacedName][]pod{}
	for _, p := range list {
		if cluster := p.Labels[clusterLabel]; cluster != "" {
			name := types.NamespacedName{Namespace: p.Namespace, Name: cluster}
			byCluster[name] = append(byCluster[name], podOf(p))
		}
	}
	return byCluster, nil
}

// Object returns the reference to a cluster in a journal.
func Object(cluster types.NamespacedName) trace.Ref {
	return trace.Ref{APIVersion: APIVersion, Kind: Kind, Namespace: cluster.Namespace, Name: cluster.Name}
}
