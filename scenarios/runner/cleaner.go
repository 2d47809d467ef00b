package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cleaner remembers created objects and removes them.
type cleaner struct {
	timeout     time.Duration // for each object
	propagation metav1.DeletionPropagation
	wait        bool // wait until an object is gone

	mu      sync.Mutex
	entries []entry
}

// entry is one created object.
type entry struct {
	of      *cleaner
	cluster *cluster
	object  *unstructured.Unstructured
}

// add remembers an object.
func (c *cleaner) add(in *cluster, object *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, entry{c, in, reference(object)})
}

// reversed returns the created objects, the newest first.
func (c *cleaner) reversed() []entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.entries)
	slices.Reverse(out)
	return out
}

// remove deletes the object and waits until it is gone. It is no error if it is gone already.
func (e entry) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.of.timeout)
	defer cancel()
	var last error
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		last = e.cluster.do(ctx, func(c client.Client) error {
			return c.Delete(ctx, e.object.DeepCopy(), client.PropagationPolicy(e.of.propagation))
		})
		return !passing(last), nil
	})
	if last != nil {
		err = last
	}
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete %s: %w", nameOf(e.object), err)
	case !e.of.wait:
		return nil
	}
	return awaitGone(ctx, e.cluster, e.object, e.of.timeout)
}

// reference returns an object with only the fields that identify it.
func reference(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	return out
}

// nameOf returns an object's name for people.
func nameOf(o *unstructured.Unstructured) string {
	name := o.GetName()
	if name == "" {
		name = "*"
	}
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return strings.TrimSpace(o.GetKind() + " " + name)
}
