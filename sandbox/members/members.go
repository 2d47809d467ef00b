// Package members looks at the members of etcd clusters in a sandbox, as somebody who keeps an eye on them does: it asks each
// of them how it is, and tells what they say as one picture of a cluster. A [Writer] writes to a cluster again and again, as
// somebody who uses it does.
//
// Clusters are known by the labels of their pods, and by the EtcdClusters that they are made of.
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

// What clusters are made of.
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

// userAgent is the lab's own: what it asks the API server is nobody's in the journal.
const userAgent = "operator-lab"

// DefaultInterval is the time from one look at the members to the next.
const DefaultInterval = 500 * time.Millisecond

// answerTime is how long a member may take to say how it is.
var answerTime = time.Second

// Dial connects to pods and Services by their addresses and names in the cluster.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Options of an [Observer].
type Options struct {
	// Config is an administrator's.
	Config *rest.Config
	// Dial reaches the members.
	Dial Dial
	// Interval from one look to the next. Default: [DefaultInterval]. It looks at once when a pod changes.
	Interval time.Duration
}

// Observer looks at the members of all etcd clusters. All methods may be called from any goroutine.
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

// New returns an observer, which looks from [Observer.Run] on.
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

// hurry has the next look taken soon.
func (b *Observer) hurry() {
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

// leastPause is the time between two looks when pods change again and again.
const leastPause = 50 * time.Millisecond

// Run looks until ctx ends, and tells what it saw of each cluster, one at a time: also when that is as before.
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

// look asks all members of all clusters, each for itself.
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
			seen := s.look(ctx, pods[name])
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

// Object is how a journal names a cluster.
func Object(cluster types.NamespacedName) trace.Ref {
	return trace.Ref{APIVersion: APIVersion, Kind: Kind, Namespace: cluster.Namespace, Name: cluster.Name}
}
