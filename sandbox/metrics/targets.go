package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/members"
)

// Labels of the series of a target, beside namespace, pod and container.
const (
	jobLabel      = "job"
	instanceLabel = "instance"
	operatorLabel = "operator"
	clusterLabel  = "etcd_cluster" // also that of the pods
)

// The jobs of targets. Any other pod has its namespace as job.
const (
	operatorJob = "operator"
	etcdJob     = "etcd"
)

// Target is an endpoint with metrics.
type Target struct {
	// Labels are added to all of its series. The operator is that which the lab runs, whose pod it is, or whose operand.
	Labels map[string]string `json:"labels"`
	// Path at the API server.
	Path string `json:"path,omitempty"`
	// Up says whether it answered the last time, Error why not, or why it is not asked.
	Up    bool   `json:"up"`
	Error string `json:"error,omitempty"`
}

// source is the name of the target in a store.
func (t *Target) source() string { return "target " + t.Path }

// Name returns the target's name for people.
func (t *Target) Name() string {
	if t.Labels["pod"] == "" {
		return "operator " + t.Labels[operatorLabel]
	}
	return t.Labels["namespace"] + "/" + t.Labels["pod"]
}

// targets returns all targets that there are now: operators of a lab, and pods that run.
func targets(ctx context.Context, c kubernetes.Interface) ([]Target, error) {
	all, err := ofLab(ctx, c)
	if err != nil {
		return nil, err
	}
	pods, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"}) // from the API server's cache
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods.Items {
		all = append(all, ofPod(&pods.Items[i])...)
	}
	slices.SortStableFunc(all, func(a, b Target) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// ofLab returns the operators that a lab runs, if there is one.
func ofLab(ctx context.Context, c kubernetes.Interface) ([]Target, error) {
	at := path.Join("/apis", v1alpha1.GroupVersion.String(), "operators")
	raw, err := c.Discovery().RESTClient().Get().AbsPath(at).DoRaw(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) { // there is none, or it is just going
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the lab's operators: %w", err)
	}
	var list v1alpha1.OperatorList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("list the lab's operators: %w", err)
	}
	var all []Target
	for _, o := range list.Items {
		all = append(all, Target{
			Labels: map[string]string{jobLabel: operatorJob, operatorLabel: o.Name, instanceLabel: "lab"},
			Path:   path.Join(at, o.Name, path.Base(v1alpha1.OperatorMetrics)),
		})
	}
	return all, nil
}

// Annotations with which pods ask to be read, by a wide-spread convention.
const (
	scrapeAnnotation = "prometheus.io/scrape"
	portAnnotation   = "prometheus.io/port"
	pathAnnotation   = "prometheus.io/path"
)

// The port of etcd's clients, which serves metrics, too.
const etcdClientPort = 2379

// ofPod returns the endpoints of a pod: the one that its annotations name, or else the ports whose name says metrics, or
// the one for clients of a member of etcd.
func ofPod(p *corev1.Pod) []Target {
	if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" {
		return nil
	}
	more := map[string]string{jobLabel: p.Namespace}
	etcd := p.Labels["app"] == "etcd" && p.Labels[clusterLabel] != ""
	if etcd {
		more = map[string]string{jobLabel: etcdJob, clusterLabel: p.Labels[clusterLabel], operatorLabel: "etcd"}
	} else if operator := operatorIn(p.Namespace); operator != "" {
		more = map[string]string{jobLabel: operatorJob, operatorLabel: operator}
	}
	target := func(container string, port int, at string) Target {
		t := Target{Labels: map[string]string{
			"namespace": p.Namespace, "pod": p.Name, "container": container, instanceLabel: p.Name + ":" + strconv.Itoa(port),
		}}
		maps.Copy(t.Labels, more)
		t.Path = path.Join("/api/v1/namespaces", p.Namespace, "pods", p.Name+":"+strconv.Itoa(port), "proxy", at)
		return t
	}
	if p.Annotations[scrapeAnnotation] == "true" {
		if port, err := strconv.ParseUint(p.Annotations[portAnnotation], 10, 16); err == nil {
			at := p.Annotations[pathAnnotation]
			if at == "" {
				at = "/metrics"
			}
			return []Target{target("", int(port), at)}
		}
	}
	var all []Target
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "metrics" || strings.HasSuffix(port.Name, "-metrics") && !strings.HasPrefix(port.Name, "https") {
				all = append(all, target(c.Name, int(port.ContainerPort), "/metrics"))
			}
		}
	}
	if etcd && len(all) == 0 {
		t := target("", etcdClientPort, "/metrics")
		if slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
			return members.ServesTLS(slices.Concat(c.Command, c.Args))
		}) {
			t.Path, t.Error = "", "not asked: it wants a certificate of its clients, also for metrics"
		}
		all = append(all, t)
	}
	return all
}

// operatorIn returns the bundled operator whose namespace it is; empty if there is none.
func operatorIn(namespace string) string {
	for _, o := range operators.All() {
		if o.Namespace == namespace {
			return o.Name
		}
	}
	return ""
}
