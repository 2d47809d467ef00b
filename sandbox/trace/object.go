package trace

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Object is an API object as it was known at some event. It never changes: a later event makes a new Object.
type Object struct {
	// Ref identifies the object; the subresource is always empty.
	Ref Ref
	// ResourceVersion is the newest one seen.
	ResourceVersion string
	// Generation is the newest one seen.
	Generation int64
	// Raw is the newest version of the object, Before the version that it replaced; either may be nil. It is that of an earlier version
	// as long as of a write, such as one whose answer was lost, the version alone is known.
	Raw, Before json.RawMessage
	// Created is the Seq of the first event about the object, Changed that of the newest.
	Created, Changed int64
	// Verb is the verb of the newest change: ADDED, MODIFIED or DELETED; empty while none was seen of an object that was there.
	Verb string
	// Deleted reports that the object is gone; it is remembered for a while to be shown.
	Deleted bool

	isOlder bool // Raw is that of an earlier version
	meta    func() *Meta
}

// Meta returns what the lab reads of the object's JSON; it is parsed when first asked for. The result is never nil.
func (o *Object) Meta() *Meta {
	if o.meta == nil {
		return parseMeta(o.Raw)
	}
	return o.meta()
}

// Lagging reports whether the observed generation of the object's status is older than the generation of its spec.
// Objects without an observed generation never lag.
func (o *Object) Lagging() bool {
	m := o.Meta()
	return m.ObservedGeneration != 0 && m.ObservedGeneration < o.Generation
}

// objectKey identifies an object across recreations and API versions.
type objectKey struct{ group, kind, namespace, name string }

func keyOf(r Ref) objectKey {
	group, _, found := strings.Cut(r.APIVersion, "/")
	if !found {
		group = ""
	}
	return objectKey{group, r.Kind, r.Namespace, r.Name}
}

// newerVersion reports whether resourceVersion a is newer than b. Versions of
// one kind are ordered numbers; anything else counts as newer.
func newerVersion(a, b string) bool {
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return err1 != nil || err2 != nil || x > y
}

// objects are the known objects.
type objects map[objectKey]*Object

// apply folds an event in: a watch event, a write, or an object that was found.
func (all objects) apply(e *Event) {
	if e.Kind == KindWatch || e.Kind == KindFound || e.Kind == KindCall && e.IsWrite() && e.Error == "" {
		all.observe(e)
	}
	if e.Seq%tombstoneAge == 0 {
		all.bury(e.Seq)
	}
}

// labGroup begins the versions of the lab's own kinds, such as Fault: no operator works on them, and no watch event tells what
// became of them.
const labGroup = "operator-lab.dev/"

// observe folds an event with an object in.
func (all objects) observe(e *Event) {
	if e.Object.Kind == "" || e.Object.Name == "" || e.Via == ViaRecorder || strings.HasPrefix(e.Object.APIVersion, labGroup) {
		return
	}
	ref := e.Object
	ref.Subresource = ""
	key := keyOf(ref)
	old := all[key]
	if old != nil && !supersedes(e, old) {
		all.complete(e, key, old)
		return
	}
	next := &Object{
		Ref: ref, ResourceVersion: e.ResourceVersion, Generation: e.Generation,
		Raw: e.After, Created: e.Seq, Changed: e.Seq, Verb: Added,
	}
	switch {
	case e.Initial:
		next.Verb = ""
	case e.Kind == KindCall && !e.creates():
		next.Verb = Modified
	}
	if old != nil {
		next.Before = old.Raw
		if old.Ref.UID == ref.UID || ref.UID == "" {
			next.Created, next.Verb, next.Ref.UID = old.Created, Modified, old.Ref.UID
		}
		if next.Raw == nil {
			next.Raw, next.isOlder = old.Raw, true
		}
		if next.Generation == 0 {
			next.Generation = old.Generation
		}
		if next.ResourceVersion == "" {
			next.ResourceVersion = old.ResourceVersion
		}
	}
	if gone(e) {
		next.Deleted, next.Verb = true, Deleted
	}
	next.meta = sync.OnceValue(func() *Meta { return parseMeta(next.Raw) })
	all[key] = next
}

// complete adds the JSON of an object of which only the version is known: that of a write whose answer was lost. An event with
// that very version has it.
func (all objects) complete(e *Event, key objectKey, old *Object) {
	if old.Raw != nil && !old.isOlder || old.Deleted || len(e.After) == 0 || e.ResourceVersion != old.ResourceVersion || e.Object.UID != old.Ref.UID {
		return
	}
	next := *old
	next.Raw, next.Generation, next.isOlder = e.After, e.Generation, false
	next.meta = sync.OnceValue(func() *Meta { return parseMeta(next.Raw) })
	all[key] = &next
}

// supersedes reports whether an event has a newer version of an object than the known one.
func supersedes(e *Event, old *Object) bool {
	switch {
	case e.Kind == KindFound: // it was listed before it was recorded: what the journal has of it may be newer
		return false
	case e.Object.UID != "" && old.Ref.UID != "" && e.Object.UID != old.Ref.UID:
		return e.Verb != Deleted && (old.Deleted || newerVersion(e.ResourceVersion, old.ResourceVersion))
	case old.Deleted:
		return e.Verb != Deleted && e.Verb != VerbDelete && newerVersion(e.ResourceVersion, old.ResourceVersion)
	case e.Verb == Deleted || e.Verb == VerbDelete:
		return true
	}
	return newerVersion(e.ResourceVersion, old.ResourceVersion)
}

// tombstoneAge is the minimum number of events for which a deleted object is remembered.
const tombstoneAge = 2048

// bury forgets the objects that were deleted long enough ago.
func (all objects) bury(seq int64) {
	for k, o := range all {
		if o.Deleted && o.Changed <= seq-tombstoneAge {
			delete(all, k)
		}
	}
}

// gone reports whether an event ended the object.
func gone(e *Event) bool {
	if e.Kind == KindWatch {
		return e.Verb == Deleted
	}
	return endsObject(e)
}

// Objects returns the objects known at this state, including those deleted recently, ordered by API group, kind,
// namespace and name.
func (all objects) Objects() []*Object {
	out := make([]*Object, 0, len(all))
	for _, o := range all {
		out = append(out, o)
	}
	sort.Slice(out, func(i, k int) bool { return lessRef(out[i].Ref, out[k].Ref) })
	return out
}

// Object returns an object, or nil if it is not known. Only API group, kind, namespace and name of the reference are
// compared.
func (all objects) Object(r Ref) *Object { return all[keyOf(r)] }

func lessRef(a, b Ref) bool {
	x, y := keyOf(a), keyOf(b)
	switch {
	case x.group != y.group:
		return x.group < y.group
	case x.kind != y.kind:
		return x.kind < y.kind
	case x.namespace != y.namespace:
		return x.namespace < y.namespace
	}
	return x.name < y.name
}

// Node is an object in the owner tree.
type Node struct {
	*Object
	// Children are the objects that it owns.
	Children []*Node
}

// Tree returns the objects as trees by owner references, preferring the controlling owner. An object whose owner is not
// known, or is part of a cycle, is a root.
func (all objects) Tree() []*Node {
	objects := all.Objects()
	byUID := map[string]*Node{}
	nodes := make([]*Node, len(objects))
	for i, o := range objects {
		nodes[i] = &Node{Object: o}
		if o.Ref.UID != "" {
			byUID[o.Ref.UID] = nodes[i]
		}
	}
	parent := map[*Node]*Node{}
	var roots []*Node
	for _, n := range nodes {
		p := ownerNode(n, byUID)
		for up := p; up != nil; up = parent[up] {
			if up == n {
				p = nil // the references form a cycle
				break
			}
		}
		if p == nil {
			roots = append(roots, n)
			continue
		}
		parent[n] = p
		p.Children = append(p.Children, n)
	}
	return roots
}

// ownerNode returns the node of an object's controlling owner, or else of its first known owner.
func ownerNode(n *Node, byUID map[string]*Node) *Node {
	var first *Node
	for _, o := range n.Meta().Owners {
		p := byUID[o.UID]
		if p == nil {
			continue
		}
		if o.Controller {
			return p
		}
		if first == nil {
			first = p
		}
	}
	return first
}
