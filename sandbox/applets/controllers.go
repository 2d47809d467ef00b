package applets

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/cli"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/storage"
)

const (
	// collectorResync is how often the garbage collector compares its monitors with the served resources. It asks
	// a cache that a watch on CRDs and APIServices empties, so it costs nothing while nothing changes.
	// Upstream polls discovery every 30 s, which leaves the children of a new kind uncollected for as long.
	collectorResync = 100 * time.Millisecond
	// syncedPoll is how often the collector is asked for it. Upstream's own wait looks every 100 ms, which a start waits for.
	syncedPoll = 5 * time.Millisecond
	// collectorSync is how long the collector waits at most for its first view of the cluster.
	collectorSync = 10 * time.Second
	// namespaceSettle is how long a deleted namespace waits, so that the one API server's admission has seen the
	// deletion too. Upstream waits 5 s because there may be several API servers and etcd members.
	namespaceSettle = 50 * time.Millisecond
	// namespaceRetry is the pause while objects with finalizers are still leaving a namespace.
	namespaceRetry = 100 * time.Millisecond
	workers        = 8
)

// controllerManager runs upstream's kube-controller-manager, with two of its controllers replaced by copies with other
// intervals, and the volume binder replaced by one with other volumes. Flags switch the originals off.
func controllerManager() int {
	cmd := app.NewControllerManagerCommand()
	volumes := cmd.Flags().String("volumes", "", "directory of the sandbox's volumes; without it claims are not bound here")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		config, err := kubeconfig(cmd)
		if err != nil {
			return err
		}
		if config != nil {
			awaitAPIServer(cmd.Context(), config)
			if err := applyLogging(cmd); err != nil {
				return err
			}
			go runOwnControllers(cmd.Context(), config, storage.Volumes(*volumes))
		}
		return run(cmd, args)
	}
	cmd.SetContext(context.Background())
	return cli.Run(cmd)
}

// applyLogging applies the command's logging flags before any goroutine logs, which could meet a half-configured
// logger. The command does it again, which changes nothing.
func applyLogging(cmd *cobra.Command) error {
	config, flags := logsapi.NewLoggingConfiguration(), pflag.NewFlagSet("logging", pflag.ContinueOnError)
	logsapi.AddFlags(config, flags)
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if given := cmd.Flags().Lookup(f.Name); given != nil && given.Changed {
			err = errors.Join(err, f.Value.Set(given.Value.String()))
		}
	})
	if err != nil {
		return err
	}
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	return logsapi.ValidateAndApply(config, utilfeature.DefaultFeatureGate)
}

// kubeconfig loads the file named by --kubeconfig, without client-side rate limits. It returns nil if the flag is not
// set, so that upstream reports that.
func kubeconfig(cmd *cobra.Command) (*rest.Config, error) {
	file := cmd.Flag("kubeconfig").Value.String()
	if file == "" {
		return nil, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// awaitAPIServer returns when the API server answers that it is ready. Upstream's own wait looks once a second.
func awaitAPIServer(ctx context.Context, config *rest.Config) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return // upstream's own start reports it
	}
	for ctx.Err() == nil {
		if client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// runOwnControllers runs the garbage collector, the namespace deleter and the volume binder, and reports that it is
// ready when the first two have their first view of the cluster. If they cannot start, the process exits, because it
// must not look healthy without them.
func runOwnControllers(ctx context.Context, config *rest.Config, volumes storage.Volumes) {
	var err error
	if volumes != "" {
		err = startVolumeBinder(ctx, config, volumes)
	}
	collecting := make(chan error, 1)
	go func() { collecting <- startGarbageCollector(ctx, config) }()
	err = errors.Join(err, startNamespaceDeleter(ctx, config), <-collecting)
	if err != nil {
		klog.ErrorS(err, "Cannot start the controllers of garbage, namespaces and volumes")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	guard.Ready()
}

func startGarbageCollector(ctx context.Context, config *rest.Config) error {
	config = rest.AddUserAgent(config, "generic-garbage-collector")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	served, err := watchServedResources(ctx, config, client.Discovery(), meta)
	if err != nil {
		return err
	}
	typed := informers.NewSharedInformerFactory(client, 0)
	partial := metadatainformer.NewSharedInformerFactory(meta, 0)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	started := make(chan struct{})
	close(started) // monitors start their informers themselves from here on
	builder := garbagecollector.NewDependencyGraphBuilder(ctx, meta, mapper, ignored(),
		informerfactory.NewInformerFactory(typed, partial), started)
	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, client, meta, mapper, builder)
	if err != nil {
		return err
	}
	go collector.Run(ctx, workers, collectorSync)
	go collector.Sync(ctx, served, collectorResync)
	return wait.PollUntilContextCancel(ctx, syncedPoll, true, func(ctx context.Context) (bool, error) {
		return collector.IsSynced(klog.FromContext(ctx)), nil
	})
}

// servedResources answers the collector's discovery from memory until something changed what the API server serves.
type servedResources struct {
	discovery.CachedDiscoveryInterface
	config    *rest.Config
	crds      cache.Store // of metadata
	stale     atomic.Bool
	watchable map[schema.GroupVersionResource]bool // used only by the goroutine of the collector's Sync
}

// ServerPreferredResources implements [discovery.ServerResourcesInterface]: it is all the collector asks for. What it
// names can be watched at once.
func (s *servedResources) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	if s.stale.Swap(false) {
		s.Invalidate()
	}
	lists, err := discovery.ServerPreferredResources(s.CachedDiscoveryInterface)
	if err == nil {
		err = s.awaitWatchable(lists)
	}
	if err != nil {
		s.stale.Store(true) // partly served: look again at the next turn
	}
	return lists, err
}

func (s *servedResources) awaitWatchable(lists []*metav1.APIResourceList) error {
	ctx, cancel := context.WithTimeout(context.Background(), collectorSync)
	defer cancel()
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			resource := version.WithResource(r.Name)
			_, isCustom, _ := s.crds.GetByKey(resource.GroupResource().String()) // what CRDs are named
			if !isCustom || s.watchable[resource] {
				continue
			}
			if err := sandbox.AwaitWatchable(ctx, s.config, resource); err != nil {
				return err
			}
			s.watchable[resource] = true
		}
	}
	return nil
}

var (
	customResources = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices     = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// watchServedResources watches the objects that determine which resources are served.
func watchServedResources(ctx context.Context, config *rest.Config, d discovery.DiscoveryInterface, meta metadata.Interface) (*servedResources, error) {
	factory := metadatainformer.NewSharedInformerFactory(meta, 0)
	served := &servedResources{
		CachedDiscoveryInterface: memory.NewMemCacheClient(d),
		config:                   config,
		crds:                     factory.ForResource(customResources).Informer().GetStore(),
		watchable:                map[schema.GroupVersionResource]bool{},
	}
	changed := func(any) {
		served.stale.Store(true)
		// Discovery follows the object by a moment (the aggregator reads it from the CRDs' server): look again.
		for _, later := range []time.Duration{100, 300, 1000, 3000} {
			time.AfterFunc(later*time.Millisecond, func() { served.stale.Store(true) })
		}
	}
	for _, resource := range []schema.GroupVersionResource{customResources, apiServices} {
		_, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    changed,
			UpdateFunc: func(_, o any) { changed(o) },
			DeleteFunc: changed,
		})
		if err != nil {
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	for _, resource := range []schema.GroupVersionResource{customResources, apiServices} {
		cache.WaitFor(ctx, "", factory.ForResource(resource).Informer().HasSyncedChecker())
	}
	return served, ctx.Err()
}

func startNamespaceDeleter(ctx context.Context, config *rest.Config) error {
	config = rest.AddUserAgent(config, "namespace-controller")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	deleter := deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), meta, client.CoreV1(),
		client.Discovery().ServerPreferredNamespacedResources, corev1.FinalizerKubernetes)
	queue := workqueue.NewTypedDelayingQueue[string]()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Namespaces().Informer()
	deleted := func(o any) {
		if ns := o.(*corev1.Namespace); ns.DeletionTimestamp != nil {
			queue.AddAfter(ns.Name, namespaceSettle)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    deleted,
		UpdateFunc: func(_, o any) { deleted(o) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for range workers {
		go deleteNamespaces(ctx, queue, deleter)
	}
	cache.WaitFor(ctx, "", informer.HasSyncedChecker())
	return ctx.Err()
}

func deleteNamespaces(ctx context.Context, queue workqueue.TypedDelayingInterface[string], deleter deletion.NamespacedResourcesDeleterInterface) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := deleter.Delete(ctx, name); err != nil {
			klog.V(2).InfoS("Namespace is not empty yet", "namespace", name, "reason", err)
			queue.AddAfter(name, namespaceRetry)
		}
		queue.Done(name)
	}
}

// ignored returns the resources that own nothing and have no owner: upstream's, and the lab's own, which are not stored
// in etcd.
func ignored() map[schema.GroupResource]struct{} {
	resources := maps.Clone(garbagecollector.DefaultIgnoredResources())
	for _, name := range []string{"operators", "loops", "faults"} {
		resources[schema.GroupResource{Group: labGroup, Resource: name}] = struct{}{}
	}
	return resources
}

// labGroup is the API group that the lab serves.
const labGroup = "operator-lab.dev"
