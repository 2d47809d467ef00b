package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// role identifies an object in all plays: its kind and its name, with * for a part that is made up.
type role struct{ apiVersion, kind, name string }

func (r role) String() string { return r.kind + " " + r.name }

// compare orders roles by kind.
func (r role) compare(with role) int {
	return cmp.Or(cmp.Compare(r.kind, with.kind), cmp.Compare(r.name, with.name), cmp.Compare(r.apiVersion, with.apiVersion))
}

// fields maps the paths of an object's fields, as expressions of Chainsaw, to their values as JSON.
type fields map[string]string

// state is what a cluster settled at: the fields of the objects of each role, sorted.
type state map[role][]fields

// kinds returns the kinds of the objects.
func (s state) kinds() []string {
	var kinds []string
	for r := range s {
		kinds = append(kinds, r.kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// objects returns all objects in a namespace of the kinds that an operator has written or watched.
func objects(ctx context.Context, reader client.Reader, journal *trace.Journal, namespace string) ([]unstructured.Unstructured, error) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, e := range journal.Since(0) {
		of := e.Kind == trace.KindWatch || e.Kind == trace.KindCall && e.IsWrite() && e.Object.Subresource == ""
		if of && e.Object.Namespace == namespace && e.Object.Kind != "Event" && e.Object.Kind != strings.ToLower(e.Object.Kind) {
			kinds[schema.FromAPIVersionAndKind(e.Object.APIVersion, e.Object.Kind)] = true
		}
	}
	var out []unstructured.Unstructured
	for kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil && !meta.IsNoMatchError(err) {
			return out, err
		}
		out = append(out, list.Items...)
	}
	return out, nil
}

// look looks at what is in the namespace of a play.
func (o *outcome) look(ctx context.Context, reader client.Reader) (err error) {
	o.objects, err = objects(ctx, reader, o.journal, o.namespace)
	o.state = o.names.stateOf(o.objects)
	return err
}

// stateOf returns the objects by their roles.
func (n randomNames) stateOf(all []unstructured.Unstructured) state {
	s := state{}
	var madeUp []string
	for i := range all {
		if r := n.roleOf(&all[i]); r.name != all[i].GetName() {
			madeUp = append(madeUp, all[i].GetName(), "<"+r.name+">")
		}
	}
	for i := range all {
		if hash := templateHash(&all[i]); hash != "" {
			madeUp = append(madeUp, hash, "<hash>")
		}
	}
	for i := range all {
		o := &all[i]
		if r := n.roleOf(o); !isOfKubernetes(r.kind, o.GetName()) && !isEnding(o) {
			s[r] = append(s[r], flat(o, r.name != o.GetName(), madeUp))
		}
	}
	for r := range s {
		slices.SortFunc(s[r], func(a, b fields) int { return cmp.Compare(a.text(), b.text()) })
	}
	return s
}

// isEnding reports whether an object is as good as gone: nobody but Kubernetes has to do anything for that, such as end its containers.
func isEnding(o *unstructured.Unstructured) bool {
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
}

// isOfKubernetes reports whether an object is in each namespace. It comes when it likes, also before a test has made its fault.
func isOfKubernetes(kind, name string) bool { return kind == "ConfigMap" && name == "kube-root-ca.crt" }

// own are the fields of metadata that are the API server's, or that differ in each namespace.
var own = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "namespace", "name", "generateName", "selfLink",
}

// flat returns the fields of an object without what is new each time: its own name, if it is made up, and the names of others that
// are, each before its pattern. The generation that a status has observed becomes whether it is the current one.
func flat(o *unstructured.Unstructured, madeUp bool, names []string) fields {
	copied := o.DeepCopy().Object
	metadata, _ := copied["metadata"].(map[string]any)
	for _, name := range own {
		delete(metadata, name)
	}
	if annotations, is := metadata["annotations"].(map[string]any); is {
		delete(annotations, "deployment.kubernetes.io/revision") // it counts the changes
	}
	if status, is := copied["status"].(map[string]any); is && o.GroupVersionKind().Group == appsv1.GroupName {
		delete(status, "collisionCount") // of hashes
	}
	changes := []string{o.GetNamespace(), "<namespace>", string(o.GetUID()), "<uid>"}
	if madeUp {
		changes = append(changes, o.GetName(), "<name>")
	}
	out := fields{}
	out.add("", copied, same{strings.NewReplacer(append(changes, names...)...), o.GetGeneration()})
	delete(out, "apiVersion")
	delete(out, "kind")
	return out
}

// same replaces what is new each time.
type same struct {
	*strings.Replacer
	generation int64
}

var (
	timeOf = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	uidOf  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

func (f fields) add(path string, value any, s same) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			f.add(strings.TrimPrefix(path+"."+quoted(s.Replace(key)), "."), v[key], s)
		}
		if len(v) == 0 && path != "" {
			f[path] = "{}"
		}
	case []any:
		types := typesOf(path, v)
		for i, item := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			if types != nil {
				at = fmt.Sprintf("%s[?type=='%s'] | [0]", path, types[i])
			}
			f.add(at, item, s)
		}
		if len(v) == 0 {
			f[path] = "[]"
		}
	case string:
		f[path] = strconv.Quote(uidOf.ReplaceAllString(timeOf.ReplaceAllString(s.Replace(v), "<time>"), "<uid>"))
	case int64:
		f[path] = fmt.Sprint(v)
		if strings.HasSuffix(path, "observedGeneration") {
			f[path] = "behind"
			if v == s.generation {
				f[path] = "current"
			}
		}
	default:
		text, _ := json.Marshal(v) // it was JSON
		f[path] = string(text)
	}
}

// typesOf returns the types of the conditions of a status, which tell them apart: their order means nothing. It returns nil if the
// list at a path is another one, or if they do not tell them apart.
func typesOf(path string, list []any) []string {
	if path != "status.conditions" {
		return nil
	}
	var types []string
	for _, item := range list {
		condition, _ := item.(map[string]any)
		of, _ := condition["type"].(string)
		if of == "" || strings.ContainsAny(of, `'\`) || slices.Contains(types, of) {
			return nil
		}
		types = append(types, of)
	}
	return types
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// quoted returns a key as a part of a path, which is an expression of Chainsaw.
func quoted(key string) string {
	if identifier.MatchString(key) {
		return key
	}
	return strconv.Quote(key)
}

// text orders the objects of a role.
func (f fields) text() string {
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(f)) {
		out.WriteString(path + "=" + f[path] + "\n")
	}
	return out.String()
}

// Difference is one way in which a cluster settled differently.
type Difference struct {
	// Object is its kind and its name; * stands for a part of the name that is made up.
	Object string `json:"object"`
	// Path is the path of the field that differs; empty if the number of such objects differs.
	Path string `json:"path,omitempty"`
	// Want and Is are the field's values, or the numbers of objects, without and with the fault.
	Want string `json:"want"`
	Is   string `json:"is"`
}

// String says in one line what is not as it is without the fault.
func (d Difference) String() string {
	switch {
	case d.Path != "":
		return fmt.Sprintf("%s: %s is %s, not %s", d.Object, d.Path, orNothing(d.Is), orNothing(d.Want))
	case d.Is == "0":
		return d.Object + " is missing"
	case d.Want == "0":
		return fmt.Sprintf("%s is there, and should not be (%s)", d.Object, d.Is)
	}
	return fmt.Sprintf("there are %s of %s, not %s", d.Is, d.Object, d.Want)
}

func orNothing(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}

// reference is what all plays without a fault have in common.
type reference struct {
	state state
	// varies are the paths that differ between plays without a fault, by role.
	varies map[role]map[string]bool
	// writes and events are what happened in the first play, which was in namespace.
	writes, events []*trace.Event
	namespace      string
	// own are the events that the operator caused itself, by Seq.
	own map[int64]bool
	// names are those that are made up in each play.
	names randomNames
	// children are the objects that it made in the first play, served those of the scenario that it did something about.
	children []*child
	served   []*served
}

// watches reports whether the operator has heard of an object of a kind.
func (r *reference) watches(kind schema.GroupVersionKind) bool {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return slices.ContainsFunc(r.events, func(e *trace.Event) bool { return e.Object.APIVersion == apiVersion && e.Object.Kind == name })
}

// newReference compares plays without a fault. Objects that are not there each time are returned too: then there is no
// reference.
func newReference(outcomes []*outcome) (r *reference, unsteady []Difference) {
	first := outcomes[0]
	var played []map[role]bool
	for _, o := range outcomes {
		played = append(played, namesIn(o))
	}
	names := learnNames(played)
	for _, o := range outcomes {
		o.state = names.stateOf(o.objects)
	}
	r = &reference{
		state: first.state, varies: map[role]map[string]bool{}, own: map[int64]bool{}, names: names,
		children: names.children(first.children), served: first.served, namespace: first.namespace,
	}
	for of := range first.state {
		r.varies[of] = map[string]bool{}
	}
	for _, o := range outcomes[1:] {
		for _, d := range r.differences(o.state) {
			if d.Path == "" {
				unsteady = append(unsteady, d.Difference)
				continue
			}
			r.varies[d.role][d.Path] = true
		}
	}
	timeline := trace.NewTimeline(first.journal)
	timeline.Update()
	for _, e := range first.journal.Since(0) {
		if e.Seq > first.settled {
			break // the scenario clears away: the faults are over
		}
		switch {
		case e.Object.Kind == "Event" || e.Object.Kind == "Lease" || e.Operator == "" || isOfKubernetes(e.Object.Kind, e.Object.Name):
		case e.Kind == trace.KindCall && e.IsWrite() && e.Via != trace.ViaRecorder:
			r.writes = append(r.writes, e)
		case e.Kind == trace.KindWatch && !e.Initial:
			r.events = append(r.events, e)
			if cause := timeline.Tip().Cause(e); cause != nil && cause.Operator != "" {
				r.own[e.Seq] = true
			}
		}
	}
	return r, unsteady
}

// difference is a Difference with its role.
type difference struct {
	Difference
	role role
}

// differences compares a state with the reference, without what varies.
func (r *reference) differences(s state) []difference {
	var out []difference
	roles := slices.Collect(maps.Keys(r.state))
	for of := range s {
		if r.state[of] == nil {
			roles = append(roles, of)
		}
	}
	slices.SortFunc(roles, role.compare)
	for _, of := range roles {
		want, is := r.state[of], s[of]
		if len(want) != len(is) {
			out = append(out, difference{Difference{of.String(), "", fmt.Sprint(len(want)), fmt.Sprint(len(is))}, of})
			continue
		}
		for i := range want {
			for _, path := range paths(want[i], is[i]) {
				if want[i][path] != is[i][path] && !r.isVaried(of, path) {
					out = append(out, difference{Difference{of.String(), path, want[i][path], is[i][path]}, of})
				}
			}
		}
	}
	return out
}

// isVaried reports whether a field differs between plays without a fault. Of an object that only another state has, as after a change,
// that is not known, and those of the others of its kind do.
func (r *reference) isVaried(of role, path string) bool {
	if known, is := r.varies[of]; is {
		return known[path]
	}
	for other, known := range r.varies {
		if other.kind == of.kind && other.apiVersion == of.apiVersion && known[path] {
			return true
		}
	}
	return false
}

// paths returns the paths of two objects, sorted.
func paths(a, b fields) []string {
	all := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(all)
	return slices.Compact(all)
}
