package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// customizeRequest is what a customize hook is given.
type customizeRequest struct {
	Controller any                        `json:"controller"`
	Parent     *unstructured.Unstructured `json:"parent"`
}

// customizeAnswer is what it answers.
type customizeAnswer struct {
	RelatedResources []relatedRule `json:"relatedResources"`
}

// relatedRule says which objects of a kind are related to a parent.
type relatedRule struct {
	v1alpha1.ResourceRule `json:",inline"`
	LabelSelector         *metav1.LabelSelector `json:"labelSelector"`
	NamespaceSelector     *metav1.LabelSelector `json:"namespaceSelector"`
	Namespace             string                `json:"namespace"`
	Names                 []string              `json:"names"`
}

func (a *customizeAnswer) check() error {
	for i, r := range a.RelatedResources {
		switch {
		case len(r.Names) > 0 && (r.LabelSelector != nil || r.NamespaceSelector != nil):
			return fmt.Errorf("rule %d of its answer has names and a selector, and can have one of them", i+1)
		case r.Namespace != "" && r.NamespaceSelector != nil:
			return fmt.Errorf("rule %d of its answer has namespace and namespaceSelector, and can have one of them", i+1)
		}
	}
	return nil
}

func (a *customizeAnswer) objects() []*unstructured.Unstructured { return nil }

func (a *customizeAnswer) status() map[string]any { return nil }

// customizer knows which objects are related to which parents. It is nil of a controller without a customize hook.
type customizer struct {
	*meta
	hook       *hook
	controller any
	parents    []kind
	watch      func(watched) error // set before the first sync

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
	rules   map[parentKey]customized
}

// parentKey identifies a parent.
type parentKey struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// customized is what the hook answered about a generation of a parent.
type customized struct {
	uid        types.UID
	generation int64
	rules      []resolvedRule
}

// resolvedRule is a rule with the kind of its resource.
type resolvedRule struct {
	relatedRule
	kind      kind
	labels    labels.Selector
	namespace labels.Selector // nil: none
}

func newCustomizer(m *meta, h *hook, controller any, parents []kind) *customizer {
	return &customizer{
		meta: m, hook: h, controller: controller, parents: parents,
		watched: map[schema.GroupVersionKind]bool{}, rules: map[parentKey]customized{},
	}
}

// forget drops a parent that is gone.
func (c *customizer) forget(gvk schema.GroupVersionKind, parent types.NamespacedName) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rules, parentKey{gvk, parent})
}

// of returns the objects that are related to a parent. The hook is asked once for each generation of it.
func (c *customizer) of(ctx context.Context, parent *unstructured.Unstructured) (objects, error) {
	out := objects{}
	if c == nil {
		return out, nil
	}
	rules, err := c.rulesOf(ctx, parent)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		out.add(r.kind.GroupVersionKind)
		list := r.kind.list()
		in := client.ListOptions{}
		switch {
		case !r.kind.namespaced:
		case r.Namespace != "":
			in.Namespace = r.Namespace
		case c.hook.version == v1alpha1.V1:
			in.Namespace = parent.GetNamespace()
		}
		if err := c.client.List(ctx, list, &in); err != nil {
			return nil, fmt.Errorf("list the related %s: %w", r.kind.Kind, err)
		}
		for i := range list.Items {
			is, err := c.matches(ctx, r, parent, &list.Items[i])
			if err != nil {
				return nil, err
			}
			if is {
				out.add(r.kind.GroupVersionKind, &list.Items[i])
			}
		}
	}
	return out, nil
}

// rulesOf returns the rules about a parent, and watches the kinds in them.
func (c *customizer) rulesOf(ctx context.Context, parent *unstructured.Unstructured) ([]resolvedRule, error) {
	key := parentKey{parent.GroupVersionKind(), client.ObjectKeyFromObject(parent)}
	c.mu.Lock()
	known := c.rules[key]
	c.mu.Unlock()
	if known.uid == parent.GetUID() && known.generation == parent.GetGeneration() && known.generation > 0 {
		return known.rules, nil
	}
	answer := &customizeAnswer{}
	if err := c.hook.ask(ctx, parent, &customizeRequest{Controller: c.controller, Parent: parent}, nil, answer); err != nil {
		return nil, err
	}
	now := customized{uid: parent.GetUID(), generation: parent.GetGeneration()}
	for _, rule := range answer.RelatedResources {
		r, err := c.resolveRule(ctx, rule, parent)
		if err != nil {
			return nil, fmt.Errorf("%s hook: %w", c.hook.name, err)
		}
		now.rules = append(now.rules, r)
	}
	c.mu.Lock()
	c.rules[key] = now
	c.mu.Unlock()
	for _, r := range now.rules {
		if err := c.watchOnce(r.kind); err != nil {
			return nil, err
		}
	}
	return now.rules, nil
}

func (c *customizer) resolveRule(ctx context.Context, rule relatedRule, parent *unstructured.Unstructured) (resolvedRule, error) {
	r := resolvedRule{relatedRule: rule, labels: labels.Everything()}
	var err error
	if r.kind, err = c.resolve(ctx, rule.ResourceRule); err != nil {
		return r, err
	}
	if rule.LabelSelector != nil {
		if r.labels, err = metav1.LabelSelectorAsSelector(rule.LabelSelector); err != nil {
			return r, err
		}
	}
	if rule.NamespaceSelector != nil {
		if r.namespace, err = metav1.LabelSelectorAsSelector(rule.NamespaceSelector); err != nil {
			return r, err
		}
		if !r.kind.namespaced {
			return r, fmt.Errorf("%s have no namespace for a namespaceSelector", r.kind.resource)
		}
	}
	if c.hook.version == v1alpha1.V1 && parent.GetNamespace() != "" && r.kind.namespaced {
		switch {
		case r.namespace != nil:
			return r, errors.New("a v1 hook of a namespaced parent cannot use namespaceSelector")
		case r.Namespace != "" && r.Namespace != parent.GetNamespace():
			return r, fmt.Errorf("a v1 hook of a parent in %s cannot relate what is in %s", parent.GetNamespace(), r.Namespace)
		}
	}
	return r, nil
}

// watchOnce watches a kind, unless that is so already.
func (c *customizer) watchOnce(k kind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[k.GroupVersionKind] {
		return nil
	}
	if err := c.watch(watched{kind: k, keys: c.parentsOf}); err != nil {
		return err
	}
	c.watched[k.GroupVersionKind] = true
	return nil
}

// parentsOf returns the keys of the parents that an object is related to.
func (c *customizer) parentsOf(ctx context.Context, object client.Object) []request {
	u, is := object.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	c.mu.Lock()
	known := maps.Clone(c.rules)
	c.mu.Unlock()
	var keys []request
	for key, about := range known {
		parent := &unstructured.Unstructured{}
		parent.SetNamespace(key.Namespace)
		if slices.ContainsFunc(about.rules, func(r resolvedRule) bool {
			is, err := c.matches(ctx, r, parent, u)
			return err == nil && is
		}) {
			keys = append(keys, keyFor(c.parents, key))
		}
	}
	return keys
}

// matches reports whether an object is what a rule relates to a parent.
func (c *customizer) matches(ctx context.Context, r resolvedRule, parent, u *unstructured.Unstructured) (bool, error) {
	switch {
	case u.GroupVersionKind() != r.kind.GroupVersionKind,
		!r.labels.Matches(labels.Set(u.GetLabels())),
		len(r.Names) > 0 && !slices.Contains(r.Names, u.GetName()),
		r.kind.namespaced && r.Namespace != "" && u.GetNamespace() != r.Namespace,
		r.kind.namespaced && c.hook.version == v1alpha1.V1 && parent.GetNamespace() != "" && u.GetNamespace() != parent.GetNamespace():
		return false, nil
	case r.namespace == nil:
		return true, nil
	}
	ns := &corev1.Namespace{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: u.GetNamespace()}, ns); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return r.namespace.Matches(labels.Set(ns.Labels)), nil
}
