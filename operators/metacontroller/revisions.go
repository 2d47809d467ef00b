package metacontroller

import (
	"context"
	"crypto/sha1" //nolint:gosec // a name that the published program gives, and no secret
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// Labels of ControllerRevisions, which keep those of different kinds of parents apart.
const (
	labelAPIGroup = "metacontroller.k8s.io/apiGroup"
	labelResource = "metacontroller.k8s.io/resource"
)

// The condition of a parent that says how far a rolling update is, and its reasons.
const (
	conditionUpdated   = "Updated"
	rolloutWaiting     = "RolloutWaiting"
	rolloutProgressing = "RolloutProgressing"
	onLatestRevision   = "OnLatestRevision"
)

func rolls(method v1alpha1.UpdateMethod) bool {
	return method == v1alpha1.RollingInPlace || method == v1alpha1.RollingRecreate
}

// roll reports whether children of any kind are updated one after the other.
func (k kinds) roll() bool {
	return slices.ContainsFunc(k, func(c childKind) bool { return rolls(c.strategy.Method) })
}

// rollOf returns how children of a kind roll; nil if they do not.
func (k kinds) rollOf(gk schema.GroupKind) *v1alpha1.UpdateStrategy {
	i := slices.IndexFunc(k, func(c childKind) bool { return c.GroupKind() == gk && rolls(c.strategy.Method) })
	if i < 0 {
		return nil
	}
	return &k[i].strategy
}

// revision is a parent as it is or was, and what the hook answers about it.
type revision struct {
	parent *unstructured.Unstructured
	object *v1alpha1.ControllerRevision
	answer *compositeAnswer
	// children are those that are to be as this revision wants them.
	children []childName
}

// childName identifies a child, whatever the version of its kind.
type childName struct {
	schema.GroupKind
	name string
}

func childNameOf(u *unstructured.Unstructured) childName {
	return childName{u.GroupVersionKind().GroupKind(), fullName(u)}
}

// rollout is a rolling update of a parent's children. The first revision is the latest.
type rollout struct {
	*composite
	parent    *unstructured.Unstructured
	observed  objects
	revisions []*revision
	there     []v1alpha1.ControllerRevision
}

// askRevisions asks the hook about the parent as it is, and about each revision of it that some children still have. Then
// it lets one more child be as the latest revision wants it, if those that are so already are well. What it decides is
// written to ControllerRevisions before any child.
func (c *composite) askRevisions(ctx context.Context, parent *unstructured.Unstructured, observed objects, one func(context.Context, *unstructured.Unstructured) (*compositeAnswer, error)) (*compositeAnswer, error) {
	r := &rollout{composite: c, parent: parent, observed: observed}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	for _, rev := range r.revisions {
		var err error
		if rev.answer, err = one(ctx, rev.parent); err != nil {
			return nil, err
		}
		if err := c.label(parent, rev.answer.wanted); err != nil {
			return nil, err
		}
	}
	r.claim()
	reason, message, err := r.advance(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.write(ctx); err != nil {
		return nil, err
	}
	return r.answer(reason, message)
}

// read finds the revisions of the parent.
func (r *rollout) read(ctx context.Context) error {
	paths := []string{"spec"}
	if history := r.cc.Spec.ParentResource.RevisionHistory; history != nil && len(history.FieldPaths) > 0 {
		paths = history.FieldPaths
	}
	now, err := fieldsAt(r.parent, paths)
	if err != nil {
		return err
	}
	var all v1alpha1.ControllerRevisionList
	if err := r.client.List(ctx, &all, client.InNamespace(r.parent.GetNamespace()), client.MatchingLabels{labelAPIGroup: r.composite.parent.Group, labelResource: r.composite.parent.resource}); err != nil {
		return fmt.Errorf("list the revisions: %w", err)
	}
	latest := &revision{parent: r.parent}
	r.revisions = []*revision{latest}
	for i := range all.Items {
		object := &all.Items[i]
		if !metav1.IsControlledBy(object, r.parent) || object.DeletionTimestamp != nil {
			continue
		}
		r.there = append(r.there, *object.DeepCopy())
		was := map[string]any{}
		if err := json.Unmarshal(object.ParentPatch.Raw, &was); err != nil {
			return fmt.Errorf("read revision %s: %w", object.Name, err)
		}
		rev := latest
		if !reflect.DeepEqual(normal(was), normal(now)) {
			rev = &revision{parent: r.parent.DeepCopy()}
			if err := setFields(rev.parent, was, paths); err != nil {
				return fmt.Errorf("read revision %s: %w", object.Name, err)
			}
			r.revisions = append(r.revisions, rev)
		}
		rev.object = object.DeepCopy()
		for _, of := range object.Children {
			for _, name := range of.Names {
				rev.children = append(rev.children, childName{schema.GroupKind{Group: of.APIGroup, Kind: of.Kind}, name})
			}
		}
	}
	if latest.object == nil {
		latest.object, err = r.newRevision(now)
	}
	return err
}

// newRevision returns the ControllerRevision of the parent as it is now.
func (r *rollout) newRevision(fields map[string]any) (*v1alpha1.ControllerRevision, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	hash := sha1.New() //nolint:gosec // see the import
	hash.Write([]byte(r.parent.GetUID()))
	hash.Write(raw)
	group := r.composite.parent.Group
	if group == "" {
		group = "core"
	}
	const longest = 253 - 1 - 2*sha1.Size
	prefix := r.composite.parent.resource + "." + group
	set := map[string]string{labelAPIGroup: r.composite.parent.Group, labelResource: r.composite.parent.resource}
	if isTrue(r.cc.Spec.GenerateSelector) {
		set[labelUID] = string(r.parent.GetUID())
	} else if template, _, err := unstructured.NestedStringMap(r.parent.Object, "spec", "template", "metadata", "labels"); err == nil {
		maps.Copy(set, template)
	}
	return &v1alpha1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.parent.GetNamespace(), Name: prefix[:min(len(prefix), longest)] + "-" + hex.EncodeToString(hash.Sum(nil)),
			Labels: set, OwnerReferences: []metav1.OwnerReference{ownerReference(r.parent)},
		},
		ParentPatch: runtime.RawExtension{Raw: raw},
	}, nil
}

// claim leaves each child to one revision, the latest if that has it, and drops what the latest does not want.
func (r *rollout) claim() {
	latest := r.revisions[0]
	taken := map[childName]bool{}
	for _, rev := range r.revisions {
		rev.children = slices.DeleteFunc(rev.children, func(name childName) bool {
			drop := taken[name] || r.children.rollOf(name.GroupKind) == nil || latest.answer.wanted.find(name.GroupKind, name.name) == nil
			taken[name] = true
			return drop
		})
	}
	for _, wish := range latest.answer.Children {
		name := childNameOf(wish)
		rev := r.of(name)
		switch {
		case r.children.rollOf(name.GroupKind) == nil, rev == latest:
		case rev == nil:
			latest.children = append(latest.children, name)
		case reflect.DeepEqual(rev.answer.wanted.find(name.GroupKind, name.name), wish): // nothing to update
			r.move(name)
		}
	}
}

// of returns the revision that has a child; nil if none has.
func (r *rollout) of(name childName) *revision {
	for _, rev := range r.revisions {
		if slices.Contains(rev.children, name) {
			return rev
		}
	}
	return nil
}

// move gives a child to the latest revision.
func (r *rollout) move(name childName) {
	for _, rev := range r.revisions {
		rev.children = slices.DeleteFunc(rev.children, func(n childName) bool { return n == name })
	}
	r.revisions[0].children = append(r.revisions[0].children, name)
}

// advance gives the next child to the latest revision, in the order of the hook's answer, and returns what the condition
// says.
func (r *rollout) advance(ctx context.Context) (reason, message string, err error) {
	latest := r.revisions[0]
	for _, wish := range latest.answer.Children {
		name := childNameOf(wish)
		if r.children.rollOf(name.GroupKind) == nil || r.of(name) == latest {
			continue
		}
		waits, err := r.waits(ctx)
		if err != nil {
			return "", "", err
		}
		if waits != "" {
			return rolloutWaiting, waits, nil
		}
		r.move(name)
		return rolloutProgressing, "updating " + wish.GetKind() + " " + wish.GetName(), nil
	}
	return onLatestRevision, "latest ControllerRevision: " + latest.object.Name, nil
}

// waits says which child of the latest revision is not well yet; empty if all are.
func (r *rollout) waits(ctx context.Context) (string, error) {
	latest := r.revisions[0]
	for _, name := range latest.children {
		text := "child " + name.Kind + " " + name.name
		strategy := r.children.rollOf(name.GroupKind)
		child := r.observed.find(name.GroupKind, name.name)
		if child == nil {
			return text + " is missing", nil
		}
		wish := latest.answer.wanted.find(name.GroupKind, name.name).DeepCopy()
		own(wish, r.parent)
		updated, err := r.updated(ctx, child, wish)
		if err != nil {
			return "", err
		}
		if child.GetDeletionTimestamp() != nil || !updated {
			return text + " is not updated yet", nil
		}
		observed, found, err := unstructured.NestedInt64(child.Object, "status", "observedGeneration")
		if err == nil && found && strategy.Method == v1alpha1.RollingInPlace && observed < child.GetGeneration() {
			return text + " has not observed its latest spec", nil
		}
		if wrong := checkStatus(strategy.StatusChecks, child); wrong != "" {
			return text + " " + wrong, nil
		}
	}
	return "", nil
}

// updated reports whether a child is as it is wanted.
func (r *rollout) updated(ctx context.Context, child, wish *unstructured.Unstructured) (bool, error) {
	sum, err := sumOf(wish)
	if err != nil {
		return false, err
	}
	parent := client.ObjectKeyFromObject(r.parent)
	if r.applied.is(parent, child.GetUID(), versionOf(sum, child)) {
		return true, nil
	}
	wish.SetUID(child.GetUID())
	differs, err := r.wouldChange(ctx, child, wish)
	if err == nil && !differs {
		r.applied.remember(parent, child.GetUID(), versionOf(sum, child))
	}
	return !differs, err
}

// checkStatus says which condition a child lacks; empty if none.
func checkStatus(checks v1alpha1.StatusChecks, child *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(child.Object, "status", "conditions")
	for _, check := range checks.Conditions {
		i := slices.IndexFunc(conditions, func(c any) bool {
			fields, is := c.(map[string]any)
			return is && fields["type"] == check.Type
		})
		if i < 0 {
			return fmt.Sprintf("has no condition %s", check.Type)
		}
		fields, _ := conditions[i].(map[string]any)
		switch {
		case check.Status != nil && fields["status"] != *check.Status:
			return fmt.Sprintf("has the condition %s with status %v, want %s", check.Type, fields["status"], *check.Status)
		case check.Reason != nil && fields["reason"] != *check.Reason:
			return fmt.Sprintf("has the condition %s with reason %v, want %s", check.Type, fields["reason"], *check.Reason)
		}
	}
	return ""
}

// write creates, updates and deletes the ControllerRevisions. Those without children, but for the latest, are dropped.
func (r *rollout) write(ctx context.Context) error {
	r.revisions = slices.DeleteFunc(r.revisions, func(rev *revision) bool { return rev != r.revisions[0] && len(rev.children) == 0 })
	for i := range r.there {
		old := &r.there[i]
		if !slices.ContainsFunc(r.revisions, func(rev *revision) bool { return rev.object.Name == old.Name }) {
			uid := old.UID
			if err := r.client.Delete(ctx, old, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete revision %s: %w", old.Name, err)
			}
		}
	}
	for _, rev := range r.revisions {
		rev.object.Children = grouped(rev.children)
		i := slices.IndexFunc(r.there, func(old v1alpha1.ControllerRevision) bool { return old.Name == rev.object.Name })
		var err error
		switch {
		case i < 0:
			err = r.client.Create(ctx, rev.object, FieldOwner)
		case !reflect.DeepEqual(r.there[i].Children, rev.object.Children):
			err = r.client.Update(ctx, rev.object, FieldOwner)
		}
		if err != nil {
			return fmt.Errorf("write revision %s: %w", rev.object.Name, err)
		}
	}
	return nil
}

// grouped returns children by kind, sorted.
func grouped(names []childName) []v1alpha1.RevisionChildren {
	names = slices.Clone(names)
	slices.SortFunc(names, func(a, b childName) int {
		return strings.Compare(a.String()+"/"+a.name, b.String()+"/"+b.name)
	})
	var out []v1alpha1.RevisionChildren
	for _, n := range names {
		if last := len(out) - 1; last >= 0 && out[last].Kind == n.Kind && out[last].APIGroup == n.Group {
			out[last].Names = append(out[last].Names, n.name)
			continue
		}
		out = append(out, v1alpha1.RevisionChildren{APIGroup: n.Group, Kind: n.Kind, Names: []string{n.name}})
	}
	return out
}

// answer puts what the revisions answered together: each child as its revision wants it, the status of the latest.
func (r *rollout) answer(reason, message string) (*compositeAnswer, error) {
	latest := r.revisions[0].answer
	out := &compositeAnswer{Status: latest.Status, ResyncAfterSeconds: latest.ResyncAfterSeconds, Finalized: latest.Finalized, wanted: latest.wanted}
	for _, rev := range r.revisions[1:] {
		for _, name := range rev.children {
			if wish := rev.answer.wanted.find(name.GroupKind, name.name); wish != nil {
				out.wanted.add(wish.GroupVersionKind(), wish)
			}
		}
		if again := rev.answer.ResyncAfterSeconds; again > 0 && (out.ResyncAfterSeconds == 0 || again < out.ResyncAfterSeconds) {
			out.ResyncAfterSeconds = again
		}
		out.Finalized = out.Finalized && rev.answer.Finalized
	}
	if out.Status == nil {
		out.Status = map[string]any{}
	}
	status := "False"
	if reason == onLatestRevision {
		status = "True"
	}
	return out, setCondition(out.Status, map[string]any{"type": conditionUpdated, "status": status, "reason": reason, "message": message})
}

// setCondition puts a condition in the place of the one of its type.
func setCondition(status, condition map[string]any) error {
	conditions, is := status["conditions"].([]any)
	if !is && status["conditions"] != nil {
		return errors.New("its answer has a status whose conditions are no list")
	}
	conditions = slices.DeleteFunc(slices.Clone(conditions), func(c any) bool {
		fields, is := c.(map[string]any)
		return is && fields["type"] == condition["type"]
	})
	status["conditions"] = append(conditions, condition)
	return nil
}

// fieldsAt returns the fields of an object at paths such as spec.template.
func fieldsAt(u *unstructured.Unstructured, paths []string) (map[string]any, error) {
	out := map[string]any{}
	for _, path := range paths {
		parts := strings.Split(path, ".")
		value, found, err := unstructured.NestedFieldCopy(u.Object, parts...)
		if err == nil && found {
			err = unstructured.SetNestedField(out, value, parts...)
		}
		if err != nil {
			return nil, invalid("spec.parentResource.revisionHistory: %s: %v", path, err)
		}
	}
	return out, nil
}

// setFields gives an object the fields at the paths, and takes away those that are not there.
func setFields(u *unstructured.Unstructured, fields map[string]any, paths []string) error {
	for _, path := range paths {
		parts := strings.Split(path, ".")
		value, found, err := unstructured.NestedFieldCopy(fields, parts...)
		switch {
		case err != nil:
			return err
		case !found:
			unstructured.RemoveNestedField(u.Object, parts...)
		default:
			if err := unstructured.SetNestedField(u.Object, value, parts...); err != nil {
				return err
			}
		}
	}
	return nil
}
