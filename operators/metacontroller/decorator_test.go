package metacontroller_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// decorator makes a DecoratorController for ConfigMaps and Secrets of this namespace, with ConfigMaps as attachments.
func (e *env) decorator(hooks *v1alpha1.DecoratorHooks) {
	e.t.Helper()
	dc := &v1alpha1.DecoratorController{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	for _, resource := range []string{"services", "secrets"} {
		dc.Spec.Resources = append(dc.Spec.Resources, v1alpha1.DecoratedResourceRule{
			ResourceRule:       v1alpha1.ResourceRule{APIVersion: "v1", Resource: resource},
			LabelSelector:      &metav1.LabelSelector{MatchLabels: map[string]string{"test": e.Name}},
			AnnotationSelector: &v1alpha1.AnnotationSelector{MatchAnnotations: map[string]string{"decorate": "yes"}},
		})
	}
	dc.Spec.Attachments = []v1alpha1.AttachmentRule{{
		ResourceRule:   v1alpha1.ResourceRule{APIVersion: "v1", Resource: "configmaps"},
		UpdateStrategy: &v1alpha1.AttachmentUpdateStrategy{Method: v1alpha1.InPlace},
	}}
	dc.Spec.Hooks = hooks
	e.MustCreate(dc)
	e.t.Cleanup(func() {
		if err := client.IgnoreNotFound(e.Delete(context.WithoutCancel(e.t.Context()), dc)); err != nil {
			e.t.Error(err)
		}
	})
}

// secret creates a Secret that is decorated.
func (e *env) secret(name string) *corev1.Secret {
	e.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.Name, Name: name, Labels: map[string]string{"test": e.Name, "old": "yes"}, Annotations: map[string]string{"decorate": "yes"},
	}}
	e.MustCreate(s)
	return s
}

func TestDecorator(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(func(hook string, request object) any {
		kind := field(request, "object", "kind")
		attached, _ := field(request, "attachments", "ConfigMap.v1").(object)
		name := field(request, "object", "metadata", "name").(string)
		if hook == "finalize" {
			return object{"labels": object{"seen": nil}, "attachments": []any{}, "finalized": len(attached) == 0}
		}
		return object{
			"labels": object{"seen": kind, "old": nil}, "annotations": object{"attached": string(rune('0' + len(attached)))},
			"attachments": []any{object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name + "-more"}, "data": object{"of": name}}},
		}
	}))
	e.decorator(&v1alpha1.DecoratorHooks{Sync: e.hook(v1alpha1.V1), Finalize: e.hook(v1alpha1.V1)})
	other := e.configMap("other")
	e.MustCreate(other)
	secret := e.secret("one")
	more := e.configMap("one-more")
	sandboxtest.Eventually(t, "it is decorated", func() bool {
		e.MustGet(secret)
		return secret.Labels["seen"] == "Secret" && secret.Labels["old"] == "" && secret.Annotations["attached"] == "1" && e.Exists(more)
	})
	if owner := metav1.GetControllerOf(more); owner == nil || owner.UID != secret.UID ||
		more.Annotations["metacontroller.k8s.io/decorator-controller"] != e.Name {
		t.Errorf("the attachment is %+v", more.ObjectMeta)
	}
	e.MustUpdate(more, func() { more.Data["of"] = "somebody" })
	sandboxtest.Eventually(t, "drift is repaired", func() bool {
		e.MustGet(more)
		return more.Data["of"] == "one"
	})
	e.MustUpdate(secret, func() { delete(secret.Labels, "test") })
	sandboxtest.Eventually(t, "what is not selected any more is finalized", func() bool {
		e.MustGet(secret)
		return secret.Labels["seen"] == "" && len(secret.Finalizers) == 0 && !e.Exists(more)
	})
	e.MustUpdate(secret, func() { secret.Labels = map[string]string{"test": e.Name} })
	sandboxtest.Eventually(t, "it is decorated again", func() bool {
		e.MustGet(secret)
		return slices.Contains(secret.Finalizers, "metacontroller.io/decoratorcontroller-"+e.Name) && e.Exists(more)
	})
	e.MustDelete(secret)
	sandboxtest.Eventually(t, "it goes after its attachment", func() bool { return !e.Exists(secret) })
	if e.Exists(more) {
		t.Error("the attachment is still there")
	}
	e.MustGet(other)
}

// TestDecoratorStatus refuses the status of a kind without one.
func TestDecoratorStatus(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(func(string, object) any { return object{"status": object{"ok": true}} }))
	e.decorator(&v1alpha1.DecoratorHooks{Sync: e.hook(v1alpha1.V1)})
	e.wantEvent(e.secret("one"), "SyncError", "secrets have no subresource status")
}
