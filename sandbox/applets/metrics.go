package applets

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/metrics/pkg/apis/metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// serveMetrics adds the resource metrics API, which 'kubectl top' and autoscalers ask, to an API server, whose scheme of
// aggregated APIs has its kinds. All it serves is what kubelets have measured; of a pod that none measures there is
// nothing.
func serveMetrics(server *genericapiserver.GenericAPIServer) error {
	client, err := kubernetes.NewForConfig(server.LoopbackClientConfig)
	if err != nil {
		return err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, aggregatorscheme.Scheme, metav1.ParameterCodec, aggregatorscheme.Codecs)
	m := &meter{client: client}
	group.VersionedResourcesStorageMap[metricsv1beta1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"nodes": usages{
			meter: m, resource: "nodes", kind: "NodeMetrics", of: ofNode,
			object: &corev1.Node{}, objects: &corev1.NodeList{}, metrics: &metrics.NodeMetrics{}, list: &metrics.NodeMetricsList{},
			unknown: "it does not answer, or began just now",
		},
		"pods": usages{
			meter: m, resource: "pods", kind: "PodMetrics", namespaced: true, of: ofPod,
			object: &corev1.Pod{}, objects: &corev1.PodList{}, metrics: &metrics.PodMetrics{}, list: &metrics.PodMetricsList{},
			unknown: "it does not run, began just now, or has a container without a process of its own, which cannot be measured",
		},
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("serve the resource metrics API: %w", err)
	}
	return server.AddPostStartHook("register-resource-metrics", func(hook genericapiserver.PostStartHookContext) error {
		if err := registerMetrics(hook, hook.LoopbackClientConfig); err != nil {
			klog.FromContext(hook).Error(err, "The resource metrics API is not listed by all means of discovery")
		}
		return nil
	})
}

// registerMetrics names the API as one of the server's own, and lets users who may view pods also view their metrics. An
// operator's or a user's objects of these names are left as they are.
func registerMetrics(ctx context.Context, config *restclient.Config) error {
	services, err := aggregator.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	version := metricsv1beta1.SchemeGroupVersion
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: version.Version + "." + version.Group},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: version.Group, Version: version.Version, GroupPriorityMinimum: 100, VersionPriority: 100,
		},
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "system:aggregated-metrics-reader", Labels: map[string]string{
			"rbac.authorization.k8s.io/aggregate-to-view": "true",
		}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{version.Group}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list"}}},
	}
	for _, create := range []func() error{
		func() error {
			_, err := services.ApiregistrationV1().APIServices().Create(ctx, service, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			return err
		},
	} {
		if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

const (
	// shortestWindow is the time that a use of processors is measured over at least: Linux counts in hundredths of a second.
	shortestWindow = time.Second
	// usualWindow is how much later the begin of the window moves on while somebody asks.
	usualWindow = 15 * time.Second
	// longestWindow is how long after a measurement nobody wants to know what has been used since then.
	longestWindow = time.Minute
	// nodePatience limits how long a node may take to answer, as metrics-server does by default; one that does not has no
	// metrics.
	nodePatience = 10 * time.Second
)

// meter asks kubelets what has been used, when it is asked, and remembers what they said before.
type meter struct {
	client kubernetes.Interface

	mu sync.Mutex
	// begin is where the window begins; next is where it begins next.
	begin, next *reading
}

// reading is what has been used until a moment.
type reading struct {
	at         time.Time
	nodes      map[string]used
	containers map[containerID]used
}

type containerID struct {
	pod  types.UID
	name string
}

// used is what something has used since it began.
type used struct {
	began, at   time.Time
	nanoseconds uint64 // of processors
	memory      uint64 // now, in bytes
}

// read returns what has been used until now, and until the window began. If that is less than shortestWindow ago, it
// waits.
func (m *meter) read(ctx context.Context) (now, before *reading, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, err = m.ask(ctx); err != nil {
		return nil, nil, err
	}
	if m.begin == nil || now.at.Sub(m.begin.at) > longestWindow {
		m.begin, m.next = now, now
	}
	if wait := shortestWindow - now.at.Sub(m.begin.at); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if now, err = m.ask(ctx); err != nil {
			return nil, nil, err
		}
	}
	before = m.begin
	if now.at.Sub(m.next.at) >= usualWindow {
		m.begin, m.next = m.next, now
	}
	return now, before, nil
}

// ask asks all kubelets at once.
func (m *meter) ask(ctx context.Context) (*reading, error) {
	nodes, err := m.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	r := &reading{at: time.Now(), nodes: map[string]used{}, containers: map[containerID]used{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, n := range nodes.Items {
		all.Go(func() {
			summary, err := m.summary(ctx, n.Name)
			if err != nil {
				klog.FromContext(ctx).V(2).Info("A node does not say what it uses", "node", n.Name, "err", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			r.add(summary)
		})
	}
	all.Wait()
	return r, nil
}

// summary asks a kubelet.
func (m *meter) summary(ctx context.Context, node string) (*statsapi.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, nodePatience)
	defer cancel()
	raw, err := m.client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").
		Suffix("stats", "summary").Param("only_cpu_and_memory", "true").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	summary := &statsapi.Summary{}
	return summary, json.Unmarshal(raw, summary)
}

func (r *reading) add(s *statsapi.Summary) {
	if u, known := usedBy(s.Node.CPU, s.Node.Memory, s.Node.StartTime); known {
		r.nodes[s.Node.NodeName] = u
	}
	for _, pod := range s.Pods {
		for _, c := range pod.Containers {
			if u, known := usedBy(c.CPU, c.Memory, c.StartTime); known {
				r.containers[containerID{types.UID(pod.PodRef.UID), c.Name}] = u
			}
		}
	}
}

// usedBy returns what was measured; false: nothing was. No process is without memory: a kubelet that does not know it says
// 0.
func usedBy(cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, began metav1.Time) (used, bool) {
	if cpu == nil || cpu.UsageCoreNanoSeconds == nil || memory == nil || memory.WorkingSetBytes == nil || *memory.WorkingSetBytes == 0 {
		return used{}, false
	}
	return used{began: began.Time, at: cpu.Time.Time, nanoseconds: *cpu.UsageCoreNanoSeconds, memory: *memory.WorkingSetBytes}, true
}

// usage returns what was used per second since before, or since the beginning of what began later; false: that was just
// now.
func (u used) usage(before used) (list corev1.ResourceList, window time.Duration, known bool) {
	if !before.began.Equal(u.began) {
		before = used{at: u.began}
	}
	window = u.at.Sub(before.at)
	if window < shortestWindow || u.nanoseconds < before.nanoseconds {
		return nil, 0, false
	}
	perSecond := float64(u.nanoseconds-before.nanoseconds) / window.Seconds()
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(perSecond), resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(int64(u.memory), resource.BinarySI),
	}, window.Round(time.Millisecond), true
}

// usages serves the metrics of the objects of a resource: of nodes or of pods.
type usages struct {
	*meter
	shown

	// resource is that of the objects, kind that of their metrics.
	resource, kind string
	namespaced     bool
	// object and objects are one object and a list of them; metrics and list are the same of their metrics. All are empty.
	object, objects, metrics, list runtime.Object
	// of returns the metrics of an object; nil: it was not measured, for one of the reasons in unknown.
	of      func(o runtime.Object, now, before *reading) runtime.Object
	unknown string
}

var _ interface {
	rest.KindProvider
	rest.Storage
	rest.Getter
	rest.Lister
	rest.Scoper
	rest.SingularNameProvider
} = usages{}

// New implements [rest.Storage].
func (u usages) New() runtime.Object { return u.metrics.DeepCopyObject() }

// Destroy implements [rest.Storage].
func (usages) Destroy() {}

// Kind implements [rest.KindProvider].
func (u usages) Kind() string { return u.kind }

// NewList implements [rest.Lister].
func (u usages) NewList() runtime.Object { return u.list.DeepCopyObject() }

// NamespaceScoped implements [rest.Scoper].
func (u usages) NamespaceScoped() bool { return u.namespaced }

// GetSingularName implements [rest.SingularNameProvider].
func (u usages) GetSingularName() string { return strings.ToLower(u.kind) }

// List implements [rest.Lister].
func (u usages) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	list, measured := u.objects.DeepCopyObject(), u.NewList()
	if err := u.request(ctx, selecting(o)).Do(ctx).Into(list); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	all, err := u.measure(ctx, objects...)
	if err != nil {
		return nil, err
	}
	return measured, meta.SetList(measured, all)
}

// Get implements [rest.Getter].
func (u usages) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	object := u.object.DeepCopyObject()
	if err := u.request(ctx, o).Name(name).Do(ctx).Into(object); err != nil {
		return nil, err
	}
	all, err := u.measure(ctx, object)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, notMeasured(u.resource, name, u.unknown)
	}
	return all[0], nil
}

// request returns a request for the objects of the resource.
func (u usages) request(ctx context.Context, options runtime.Object) *restclient.Request {
	return u.client.CoreV1().RESTClient().Get().NamespaceIfScoped(genericapirequest.NamespaceValue(ctx), u.namespaced).
		Resource(u.resource).VersionedParams(options, clientgoscheme.ParameterCodec)
}

// measure returns the metrics of those objects that were measured.
func (u usages) measure(ctx context.Context, objects ...runtime.Object) (all []runtime.Object, err error) {
	now, before, err := u.read(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if one := u.of(o, now, before); one != nil {
			all = append(all, one)
		}
	}
	return all, nil
}

// ofNode returns the metrics of a node; nil: it was not measured.
func ofNode(o runtime.Object, now, before *reading) runtime.Object {
	node := o.(*corev1.Node)
	used, measured := now.nodes[node.Name]
	if !measured {
		return nil
	}
	usage, window, known := used.usage(before.nodes[node.Name])
	if !known {
		return nil
	}
	return &metrics.NodeMetrics{
		ObjectMeta: metaOf(&node.ObjectMeta, now.at), Timestamp: metav1.NewTime(used.at), Window: metav1.Duration{Duration: window}, Usage: usage,
	}
}

// ofPod returns the metrics of a pod; nil: not all its running containers were measured. Who adds them up would take a
// part for the whole.
func ofPod(o runtime.Object, now, before *reading) runtime.Object {
	pod := o.(*corev1.Pod)
	m := &metrics.PodMetrics{ObjectMeta: metaOf(&pod.ObjectMeta, now.at)}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if s.State.Running == nil {
				continue
			}
			id := containerID{pod.UID, s.Name}
			used, measured := now.containers[id]
			if !measured {
				return nil
			}
			usage, window, known := used.usage(before.containers[id])
			if !known {
				return nil
			}
			m.Containers = append(m.Containers, metrics.ContainerMetrics{Name: s.Name, Usage: usage})
			m.Timestamp, m.Window.Duration = metav1.NewTime(used.at), max(m.Window.Duration, window)
		}
	}
	if len(m.Containers) == 0 {
		return nil
	}
	return m
}

// metaOf returns the metadata of the metrics of an object.
func metaOf(o *metav1.ObjectMeta, at time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: o.Labels, CreationTimestamp: metav1.NewTime(at)}
}

// selecting returns the options of a list that choose objects.
func selecting(o *internalversion.ListOptions) *metav1.ListOptions {
	chosen := &metav1.ListOptions{}
	if o != nil && o.LabelSelector != nil {
		chosen.LabelSelector = o.LabelSelector.String()
	}
	if o != nil && o.FieldSelector != nil {
		chosen.FieldSelector = o.FieldSelector.String()
	}
	return chosen
}

// notMeasured is the error for something of which there are no metrics.
func notMeasured(resource, name, why string) error {
	err := apierrors.NewNotFound(metrics.Resource(resource), name)
	err.ErrStatus.Message = fmt.Sprintf("there are no metrics of %q: %s", name, why)
	return err
}

// shown shows metrics as a table.
type shown struct{}

// ConvertToTable implements [rest.TableConvertor].
func (shown) ConvertToTable(_ context.Context, o, _ runtime.Object) (*metav1.Table, error) {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name"}, {Name: "CPU", Type: "string"}, {Name: "Memory", Type: "string"}, {Name: "Window", Type: "string"},
	}}
	add := func(name string, window metav1.Duration, o runtime.Object, all ...corev1.ResourceList) {
		var cpu, memory resource.Quantity
		for _, usage := range all {
			cpu.Add(*usage.Cpu())
			memory.Add(*usage.Memory())
		}
		t.Rows = append(t.Rows, metav1.TableRow{
			Cells: []any{name, cpu.String(), memory.String(), window.Duration.String()}, Object: runtime.RawExtension{Object: o},
		})
	}
	pod := func(p *metrics.PodMetrics) {
		var all []corev1.ResourceList
		for _, c := range p.Containers {
			all = append(all, c.Usage)
		}
		add(p.Name, p.Window, p, all...)
	}
	switch o := o.(type) {
	case *metrics.NodeMetrics:
		add(o.Name, o.Window, o, o.Usage)
	case *metrics.NodeMetricsList:
		for i := range o.Items {
			add(o.Items[i].Name, o.Items[i].Window, &o.Items[i], o.Items[i].Usage)
		}
	case *metrics.PodMetrics:
		pod(o)
	case *metrics.PodMetricsList:
		for i := range o.Items {
			pod(&o.Items[i])
		}
	default:
		return nil, apierrors.NewInternalError(fmt.Errorf("%T has no table", o))
	}
	return t, nil
}
