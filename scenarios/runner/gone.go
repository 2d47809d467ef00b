package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

// awaitGone waits until an object is gone. One of its name with another UID has been made since. When the time is up, its
// error says what blocks the deletion.
func awaitGone(ctx context.Context, in *cluster, object *unstructured.Unstructured, timeout time.Duration) error {
	var last *unstructured.Unstructured
	var problem error
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		found, err := in.get(ctx, object)
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return true, nil
		case err == nil && object.GetUID() != "" && found.GetUID() != object.GetUID():
			return true, nil
		case err == nil:
			last = found
		default:
			problem = err // the API server may become reachable again
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case last == nil && problem != nil:
		return fmt.Errorf("whether %s is gone could not be told: %w", nameOf(object), problem)
	}
	return stuck(ctx, in, object, last, timeout)
}

// stuck returns an error that says why an object is not gone.
func stuck(ctx context.Context, in *cluster, object, last *unstructured.Unstructured, timeout time.Duration) error {
	var reasons []string
	hint := "raise timeouts.cleanup or timeouts.delete if it only takes longer"
	if last != nil {
		if f := last.GetFinalizers(); len(f) > 0 {
			reasons = append(reasons, "it has the finalizers "+strings.Join(f, ", "))
			hint = "a finalizer is removed by the controller it belongs to: is that running, and does it work?"
		}
		if last.GetDeletionTimestamp() == nil {
			reasons = append(reasons, "it is not marked as deleted: it may have been made again")
		}
		if last.GetKind() == "Namespace" && last.GroupVersionKind().Group == "" {
			if left := append(conditions(last), in.left(ctx, last.GetName())...); len(left) > 0 {
				reasons = append(reasons, left...)
				hint = "what is left is removed by the controllers that its finalizers belong to: are they running, and do they work?"
			}
		}
	}
	message := fmt.Sprintf("%s is still there %s after its deletion", nameOf(object), timeout)
	if len(reasons) > 0 {
		message += ": " + strings.Join(reasons, "; ")
	}
	return &problem{failure: report.Failure{Message: message, Hint: hint}, err: context.DeadlineExceeded}
}

// conditions returns a namespace's conditions about its remaining content.
func conditions(ns *unstructured.Unstructured) []string {
	var out []string
	all, _, _ := unstructured.NestedSlice(ns.Object, "status", "conditions")
	for _, c := range all {
		condition, _ := c.(map[string]any)
		if condition["status"] == "True" {
			if message, ok := condition["message"].(string); ok && message != "" {
				out = append(out, message)
			}
		}
	}
	return out
}

// lookPatience limits the time to find out what is left in a namespace.
const lookPatience = 5 * time.Second

// left names some of the objects that are left in a namespace, with their finalizers.
func (c *cluster) left(ctx context.Context, namespace string) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience) // ctx may have ended already
	defer cancel()
	config, err := c.rest()
	if err != nil {
		return nil
	}
	config = rest.CopyConfig(config)
	config.Timeout = lookPatience
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil
	}
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	lists, _ := finder.ServerPreferredNamespacedResources() // may be incomplete if there was an error
	var out []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, kind := range list.APIResources {
			objects, err := reader.Resource(gv.WithResource(kind.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: enough})
			if err != nil {
				continue
			}
			for _, o := range objects.Items {
				text := kind.Kind + " " + o.Name
				if len(o.Finalizers) > 0 {
					text += " with the finalizers " + strings.Join(o.Finalizers, ", ")
				}
				if out = append(out, text); len(out) == enough {
					return append(out, "and perhaps more")
				}
			}
		}
	}
	return out
}
