package etcd

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// clusterWriter writes what belongs to a cluster, and tells of it in events.
type clusterWriter struct {
	client client.Client
	live   client.Reader // past the cache, before what cannot be undone
	writer kit.Writer
	events events.EventRecorder
}

// keep ensures that an object has the fields that are wanted, and leaves all its other fields to others. current is what
// was found, without a UID if nothing was, and becomes what there is afterwards. An object of somebody else is left
// alone, and noted in the pass.
func (r *clusterWriter) keep(ctx context.Context, p *clusterPass, current client.Object, want *unstructured.Unstructured) error {
	was := birthOf(current)
	change, err := r.writer.Ensure(ctx, current, want, p.mine)
	switch updated := p.known.ObservedGeneration != p.cluster.Generation; {
	case change == kit.Created:
		r.note(p, want, corev1.EventTypeNormal, "Created", "Create", "Created %s %s", want.GetKind(), want.GetName())
	case change == kit.Taken:
		p.taken = append(p.taken, want.GetKind()+" "+want.GetName())
	case change == kit.Applied && updated:
		r.note(p, want, corev1.EventTypeNormal, "Updated", "Update", "Updated %s %s", want.GetKind(), want.GetName())
	case change == kit.Applied && was == p.birth: // a change of the birth is the operator's own
		r.note(p, want, corev1.EventTypeNormal, "Repaired", "Repair", "Repaired %s %s", want.GetKind(), want.GetName())
	}
	return err
}

func (r *clusterWriter) note(p *clusterPass, about runtime.Object, kind, reason, action, text string, args ...any) {
	r.events.Eventf(p.cluster, about, kind, reason, action, text, args...)
}

// delete deletes the object that was read, and no later one of the same name, unless it is being deleted already.
func (r *clusterWriter) delete(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := r.writer.Delete(ctx, obj); !apierrors.IsConflict(err) {
		return err
	}
	return nil // it is gone, and another object has its name
}

// wantedObject is an object of a cluster: the fields that are ours, and no others. Whatever is not named in it belongs to
// somebody else, and stays as they want it.
func wantedObject(cluster *v1beta2.EtcdCluster, version, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(cluster.Namespace)
	u.SetName(name)
	u.SetLabels(clusterLabels(cluster))
	u.SetOwnerReferences([]metav1.OwnerReference{*ownedBy(cluster)})
	return u
}

func clusterLabels(cluster *v1beta2.EtcdCluster) map[string]string {
	return map[string]string{AppLabel: AppName, ClusterLabel: cluster.Name}
}

func ownedBy(cluster *v1beta2.EtcdCluster) *metav1.OwnerReference {
	return metav1.NewControllerRef(cluster, v1beta2.GroupVersion.WithKind(v1beta2.EtcdClusterKind))
}
