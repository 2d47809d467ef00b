package members

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// pod is the part of a member's pod that is used here.
type pod struct {
	name      string
	uid       types.UID
	phase     corev1.PodPhase
	leaving   bool
	ip        string
	requested string
	secure    bool
	problem   string
}

const containerName = "etcd"

func podOf(p *corev1.Pod) pod {
	out := pod{
		name: p.Name, uid: p.UID, phase: p.Status.Phase, leaving: p.DeletionTimestamp != nil, ip: p.Status.PodIP,
		requested: p.Annotations[versionAnnotation], problem: trouble(p),
	}
	for _, c := range p.Spec.Containers {
		if c.Name != containerName && len(p.Spec.Containers) > 1 {
			continue
		}
		if out.requested == "" {
			out.requested = imageVersion(c.Image)
		}
		out.secure = ServesTLS(slices.Concat(c.Command, c.Args))
	}
	return out
}

// imageVersion returns the version in an image's tag.
func imageVersion(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	_, tag, _ := strings.Cut(name, ":")
	return strings.TrimPrefix(tag, "v")
}

// ServesTLS reports whether the command of a member of etcd makes it serve its clients with TLS.
func ServesTLS(command []string) bool {
	const flag = "--listen-client-urls"
	words := strings.Fields(strings.Join(command, " ")) // the command may be a shell's
	for i, word := range words {
		if value, is := strings.CutPrefix(word, flag); is && strings.HasPrefix(value, "=https:") {
			return true
		} else if is && value == "" && i+1 < len(words) && strings.HasPrefix(words[i+1], "https:") {
			return true
		}
	}
	return false
}

// trouble returns the reason why a pod does not run; empty if it does.
func trouble(p *corev1.Pod) string {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason
		}
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return t.Reason
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	return ""
}

// cluster is the part of an EtcdCluster that is used here.
type cluster struct {
	uid            types.UID
	operatorSecret string
}

// listClusters returns the EtcdClusters that are not being deleted. Without such a resource there are none.
func (b *Observer) listClusters() map[types.NamespacedName]cluster {
	list, err := b.clusters.List(labels.Everything())
	if err != nil {
		return nil
	}
	out := map[types.NamespacedName]cluster{}
	for _, o := range list {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetDeletionTimestamp() == nil {
			secret, _, _ := unstructured.NestedString(u.Object, "spec", "TLS", "static", "operatorSecret") // none if it is something else
			out[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = cluster{u.GetUID(), secret}
		}
	}
	return out
}

// Wanted reports whether there is an EtcdCluster of the name that is not being deleted.
func (b *Observer) Wanted(name types.NamespacedName) bool {
	_, wanted := b.listClusters()[name]
	return wanted
}

// Clusters returns the EtcdClusters that there are at the moment, for a command that only needs their names.
func Clusters(ctx context.Context, config *rest.Config) ([]types.NamespacedName, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := objects.Resource(etcdClusters).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []types.NamespacedName
	for _, o := range list.Items {
		names = append(names, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	return names, nil
}
