package runner

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

func (s *stepRun) deletes(ctx context.Context, in inherited, d *format.Delete) ([]action, error) {
	var inline any
	if d.Ref != nil {
		inline = refObject(d.Ref)
	}
	all, err := s.resources(ctx, in, inline, d.File, true)
	if err != nil {
		return nil, err
	}
	actions := make([]action, len(all))
	for i, r := range all {
		actions[i] = action{name: title(r.object), position: r.position, do: func(ctx context.Context, in inherited, now *doing) error {
			return now.delete(ctx, in, d, r)
		}}
	}
	return actions, nil
}

// refObject returns an object with the fields of a reference.
func refObject(r *format.ObjectReference) map[string]any {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": string(r.APIVersion), "kind": string(r.Kind)}}
	if r.Name != "" {
		u.SetName(string(r.Name))
	}
	if r.Namespace != "" {
		u.SetNamespace(string(r.Namespace))
	}
	if len(r.Labels) > 0 {
		u.SetLabels(r.Labels)
	}
	return u.Object
}

// delete deletes all matching objects, and waits until they are gone.
func (d *doing) delete(ctx context.Context, in inherited, op *format.Delete, r resource) error {
	in, err := in.with(ctx, settings{
		cluster: op.Cluster, clusters: op.Clusters, templating: op.Template, propagation: op.DeletionPropagationPolicy,
		timeouts: &format.Timeouts{Delete: op.Timeout}, bindings: op.Bindings,
	})
	if err != nil {
		return err
	}
	object := r.object
	if in.templating {
		if object, err = in.scope.Object(ctx, object); err != nil {
			return err
		}
	}
	c, u, err := d.resolve(ctx, in, object)
	if err != nil {
		return err
	}
	d.report.Name = nameOf(u)
	ctx, cancel := context.WithTimeout(ctx, in.timeouts.delete)
	defer cancel()
	found, err := read(ctx, c, u)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var problems []error
	var deleted []*unstructured.Unstructured
	for _, o := range found {
		err := c.do(ctx, func(cl client.Client) error {
			return cl.Delete(ctx, o.DeepCopy(), client.PropagationPolicy(in.propagation))
		})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		if err == nil {
			deleted = append(deleted, o)
		}
		matched, unexpected := in.scope.With("error", messageOf(err)).Expect(ctx, o.Object, op.Expect)
		if matched {
			err = unexpected
		}
		problems = append(problems, err)
	}
	for _, o := range deleted {
		problems = append(problems, awaitGone(ctx, c, o, in.timeouts.delete))
	}
	return errors.Join(problems...)
}

// read returns the object with a name, or all objects with the labels.
func read(ctx context.Context, in *cluster, like *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if like.GetName() != "" {
		found, err := in.get(ctx, like)
		if err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{found}, nil
	}
	var list *unstructured.UnstructuredList
	err := in.do(ctx, func(c client.Client) error {
		list = &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(like.GroupVersionKind())
		var options []client.ListOption
		if ns := like.GetNamespace(); ns != "" {
			options = append(options, client.InNamespace(ns))
		}
		if labels := like.GetLabels(); len(labels) > 0 {
			options = append(options, client.MatchingLabels(labels))
		}
		return c.List(ctx, list, options...)
	})
	if err != nil {
		return nil, err
	}
	found := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}
