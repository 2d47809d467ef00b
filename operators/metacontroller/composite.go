package metacontroller

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// setupComposite adds the controller that starts those of CompositeControllers.
func (m *meta) setupComposite() error {
	s := &spawner[*v1alpha1.CompositeController]{
		meta: m, name: compositeName, described: map[string]any{},
		empty: func() *v1alpha1.CompositeController { return &v1alpha1.CompositeController{} },
		spec:  func(cc *v1alpha1.CompositeController) any { return cc.Spec },
		rules: func(cc *v1alpha1.CompositeController) []v1alpha1.ResourceRule {
			rules := []v1alpha1.ResourceRule{cc.Spec.ParentResource.ResourceRule}
			for _, child := range cc.Spec.ChildResources {
				rules = append(rules, child.ResourceRule)
			}
			return rules
		},
		status: func(cc *v1alpha1.CompositeController) (any, *[]metav1.Condition) {
			cc.Status.ObservedGeneration = cc.Generation
			return &cc.Status, &cc.Status.Conditions
		},
		begin: m.beginComposite,
	}
	return s.setup(&v1alpha1.CompositeControllerList{})
}

// composite is the controller that a CompositeController describes.
type composite struct {
	*meta
	cc       *v1alpha1.CompositeController
	parent   kind
	selector labels.Selector // of parents
	children kinds
	sync     *hook
	finalize *hook
	related  *customizer
	applied  applied
	// finalizer is the name of the finalizer that parents have while there is a finalize hook.
	finalizer string
}

// beginComposite starts the controller of a CompositeController. An error that is a problem says what is wrong with it.
func (m *meta) beginComposite(ctx context.Context, cc *v1alpha1.CompositeController) error {
	c := &composite{meta: m, cc: cc, selector: labels.Everything(), finalizer: "metacontroller.io/compositecontroller-" + cc.Name}
	var err error
	if c.parent, err = m.resolve(ctx, cc.Spec.ParentResource.ResourceRule); err != nil {
		return err
	}
	if !c.parent.status {
		return &problem{v1alpha1.ReasonNoStatusSubresource, "the parents, " + c.parent.resource + " of " + c.parent.GroupVersion().String() +
			", have no subresource status: add subresources: {status: {}} to that version of their definition"}
	}
	if sel := cc.Spec.ParentResource.LabelSelector; sel != nil {
		if c.selector, err = metav1.LabelSelectorAsSelector(sel); err != nil {
			return invalid("spec.parentResource.labelSelector: %v", err)
		}
	}
	for _, rule := range cc.Spec.ChildResources {
		strategy := v1alpha1.UpdateStrategy{}
		if rule.UpdateStrategy != nil {
			strategy = *rule.UpdateStrategy
		}
		child, err := m.resolveChild(ctx, rule.ResourceRule, strategy)
		if err != nil {
			return err
		}
		if c.children.find(child.GroupVersionKind) != nil {
			return invalid("spec.childResources has %s of %s twice", rule.Resource, rule.APIVersion)
		}
		c.children = append(c.children, child)
	}
	if err := c.setHooks(); err != nil {
		return err
	}
	s := spawn{id: compositeName + "/" + cc.Name, name: cc.Name, reconciler: c, parents: []watched{{
		kind: c.parent, keys: selfUnless(c.ignored), changes: parentChanges(isTrue(cc.Spec.ParentResource.IgnoreStatusChanges)),
	}}}
	for _, child := range c.children {
		s.children = append(s.children, watched{kind: child.kind, keys: c.parentsOf})
	}
	if c.children.roll() {
		if !c.parent.namespaced {
			return notSupported("a rolling update of the children of %s, which are in no namespace,", c.parent.resource)
		}
		s.children = append(s.children, watched{object: &v1alpha1.ControllerRevision{}, keys: c.parentsOf})
	}
	s.related = c.related
	return m.start(s, m.failed(cc))
}

func (c *composite) setHooks() error {
	hooks := c.cc.Spec.Hooks
	switch {
	case hooks == nil:
		return invalid("spec.hooks is missing")
	case hooks.Sync == nil && hooks.Finalize == nil:
		return invalid("spec.hooks has no sync")
	case hooks.PreUpdateChild != nil || hooks.PostUpdateChild != nil:
		return notSupported("spec.hooks.preUpdateChild or postUpdateChild")
	case len(c.cc.Spec.EndpointConfigs) > 0:
		return notSupported("spec.endpointConfigs")
	}
	var err error
	if c.sync, err = c.newHook(c.cc.Name, hookSync, hooks.Sync); err != nil {
		return err
	}
	if c.finalize, err = c.newHook(c.cc.Name, hookFinalize, hooks.Finalize); err != nil {
		return err
	}
	customize, err := c.newHook(c.cc.Name, hookCustomize, hooks.Customize)
	if customize != nil {
		c.related = newCustomizer(c.meta, customize, c.cc, []kind{c.parent})
	}
	return err
}

// ignored reports whether a parent is none of this controller's: it is not selected, and has no finalizer of it.
func (c *composite) ignored(parent client.Object) bool {
	return !c.selector.Matches(labels.Set(parent.GetLabels())) && !hasFinalizer(parent, c.finalizer)
}

// parentsOf returns the keys of the parents that a change of a child concerns: the one that controls it, or for an orphan
// those that might adopt it.
func (c *composite) parentsOf(ctx context.Context, child client.Object) []request {
	if metav1.GetControllerOf(child) != nil {
		parent := c.cached(ctx, child, c.parent)
		if parent == nil || c.ignored(parent) {
			return nil
		}
		return []request{{NamespacedName: client.ObjectKeyFromObject(parent)}}
	}
	if child.GetDeletionTimestamp() != nil || isTrue(c.cc.Spec.GenerateSelector) && child.GetLabels()[labelUID] == "" {
		return nil
	}
	all := c.parent.list()
	in := client.ListOptions{}
	if c.parent.namespaced {
		in.Namespace = child.GetNamespace()
	}
	if err := c.mgr.GetCache().List(ctx, all, &in); err != nil {
		return nil
	}
	var keys []request
	for i := range all.Items {
		parent := &all.Items[i]
		selector, err := c.selectorOf(parent)
		if err == nil && selector.Matches(labels.Set(child.GetLabels())) && !c.ignored(parent) {
			keys = append(keys, request{NamespacedName: client.ObjectKeyFromObject(parent)})
		}
	}
	return keys
}

// labelUID is the label of children when selectors are generated.
const labelUID = "controller-uid"

// selectorOf returns the selector of a parent's children.
func (c *composite) selectorOf(parent *unstructured.Unstructured) (labels.Selector, error) {
	if isTrue(c.cc.Spec.GenerateSelector) {
		return labels.SelectorFromSet(labels.Set{labelUID: string(parent.GetUID())}), nil
	}
	fields, _, err := unstructured.NestedMap(parent.Object, "spec", "selector")
	if err != nil {
		return nil, invalid("spec.selector of %s %s is no label selector: %v", parent.GetKind(), parent.GetName(), err)
	}
	selector := &metav1.LabelSelector{}
	if err := fromFields(fields, selector); err != nil {
		return nil, invalid("spec.selector of %s %s is no label selector: %v", parent.GetKind(), parent.GetName(), err)
	}
	if len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0 {
		return nil, invalid("%s %s has no spec.selector with matchLabels or matchExpressions, and %s does not set generateSelector",
			parent.GetKind(), parent.GetName(), c.cc.Name)
	}
	out, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, invalid("spec.selector of %s %s: %v", parent.GetKind(), parent.GetName(), err)
	}
	return out, nil
}

// label makes the children of a parent match its selector, or says which does not.
func (c *composite) label(parent *unstructured.Unstructured, wanted objects) error {
	selector, err := c.selectorOf(parent)
	if err != nil {
		return err
	}
	for _, child := range wanted.list() {
		set, _, err := unstructured.NestedStringMap(child.Object, "metadata", "labels")
		if err != nil {
			return invalid("the labels of %s %s are none: %v", child.GetKind(), child.GetName(), err)
		}
		if isTrue(c.cc.Spec.GenerateSelector) && set[labelUID] == "" {
			set = maps.Clone(set)
			if set == nil {
				set = map[string]string{}
			}
			set[labelUID] = string(parent.GetUID())
			child.SetLabels(set)
		}
		if !selector.Matches(labels.Set(set)) {
			return invalid("the labels of %s %s do not match the selector of its parent, %s: it would be let go of at once",
				child.GetKind(), child.GetName(), selector)
		}
	}
	return nil
}
