package etcd

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// keep ensures that an object has the fields that are wanted, and leaves all its other fields to others. there is what was
// found, without a UID if nothing was. An object of somebody else is left alone, and noted in the pass.
func (r *hardenedClusters) keep(ctx context.Context, p *clusterPass, there client.Object, want *unstructured.Unstructured) error {
	switch {
	case there.GetUID() == "":
		return r.create(ctx, p, there, want)
	case !p.mine(there):
		p.take(want)
		return nil
	case there.GetDeletionTimestamp() != nil:
		return nil // the event of its end wakes us
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return fmt.Errorf("convert %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	if has(fields["metadata"], want.Object["metadata"]) && has(fields["spec"], want.Object["spec"]) {
		return nil
	}
	return r.apply(ctx, p, there, want)
}

// create makes an object that the cache does not have. It creates rather than applies, because applying would take over
// what somebody else made since the cache looked.
func (r *hardenedClusters) create(ctx context.Context, p *clusterPass, there client.Object, want *unstructured.Unstructured) error {
	log.FromContext(ctx).Info("Creating", "object", want.GetKind()+" "+want.GetName())
	err := r.client.Create(ctx, want, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return r.exists(ctx, p, there, want)
	}
	if err != nil {
		return fmt.Errorf("create %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	r.note(p, want, corev1.EventTypeNormal, "Created", "Create", "Created %s %s", want.GetKind(), want.GetName())
	return readBackInto(want, there)
}

// exists looks at what has the name of an object that should be made. If it is ours, an earlier pass made it, and its event
// is on the way.
func (r *hardenedClusters) exists(ctx context.Context, p *clusterPass, there client.Object, want *unstructured.Unstructured) error {
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(want), there); err != nil {
		return fmt.Errorf("get %s %s, which exists: %w", want.GetKind(), want.GetName(), err)
	}
	if !p.mine(there) {
		p.take(want)
	}
	return nil
}

func (p *clusterPass) take(want *unstructured.Unstructured) {
	p.taken = append(p.taken, want.GetKind()+" "+want.GetName())
}

// apply writes the wanted fields over whatever has been written there. The UID keeps it from reaching any object but the
// one that was looked at.
func (r *hardenedClusters) apply(ctx context.Context, p *clusterPass, there client.Object, want *unstructured.Unstructured) error {
	log.FromContext(ctx).Info("Applying", "object", want.GetKind()+" "+want.GetName())
	want.SetUID(there.GetUID())
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), fieldOwner, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	if p.known.ObservedGeneration == p.cluster.Generation && !has(map[string]any{"birth": birthOf(there).String()}, map[string]any{"birth": p.birth.String()}) {
		return readBackInto(want, there) // its birth changed, which is the operator's own
	}
	reason, action := "Repaired", "Repair"
	if p.known.ObservedGeneration != p.cluster.Generation {
		reason, action = "Updated", "Update"
	}
	r.note(p, want, corev1.EventTypeNormal, reason, action, "%s %s %s", reason, want.GetKind(), want.GetName())
	return readBackInto(want, there)
}

func (r *hardenedClusters) note(p *clusterPass, about runtime.Object, kind, reason, action, text string, args ...any) {
	r.events.Eventf(p.cluster, about, kind, reason, action, text, args...)
}

// delete deletes the very object that was looked at, and no later one of the same name.
func (r *hardenedClusters) delete(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	kind := reflect.TypeOf(obj).Elem().Name()
	log.FromContext(ctx).Info("Deleting", "object", kind+" "+obj.GetName())
	uid := obj.GetUID()
	err := r.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // it is gone, and this is another one of its name
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", kind, obj.GetName(), err)
	}
	return nil
}

// readBackInto makes into what the API server answered.
func readBackInto(answer *unstructured.Unstructured, into client.Object) error {
	fresh := reflect.New(reflect.TypeOf(into).Elem()) // fields that are gone must not stay
	reflect.ValueOf(into).Elem().Set(fresh.Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, into); err != nil {
		return fmt.Errorf("read %s %s back: %w", answer.GetKind(), answer.GetName(), err)
	}
	return nil
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

// has tells whether everything that is wanted is there, and does not mind what is there besides: of a map the wanted keys,
// of a list the wanted elements, in any order. Selectors have to be the same, as one label more selects fewer pods; so
// have lists of ports, as one more is one too many.
func has(there, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		there, _ := there.(map[string]any)
		for key, value := range want {
			if key == "selector" && !reflect.DeepEqual(there[key], value) {
				return false
			}
			if !has(there[key], value) {
				return false
			}
		}
		return true
	case []any:
		there, _ := there.([]any)
		for _, value := range want {
			if !anyHas(there, value) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(there, want)
	}
}

func anyHas(list []any, want any) bool {
	for _, element := range list {
		if has(element, want) {
			return true
		}
	}
	return false
}
