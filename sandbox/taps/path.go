//go:build go1.23

package taps

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// refOf returns the reference of a request's target; its kind is the resource until an object shows the kind.
func refOf(p apirequest.Target) trace.Ref {
	return trace.Ref{
		APIVersion: p.GroupVersion().String(), Kind: p.Resource, Namespace: p.Namespace, Name: p.Name, Subresource: p.Subresource,
	}
}

// knownRef returns the reference of a request's target, with its kind if an earlier answer had it: the answer to a
// deletion has none.
func (t *Taps) knownRef(p apirequest.Target) trace.Ref {
	r := refOf(p)
	if kind, ok := t.kinds.Load(p.GVR()); ok && p.Subresource == "" {
		r.Kind, _ = kind.(string)
	}
	return r
}

// learnKind remembers the kind in an answer about an object itself, not about a subresource.
func (t *Taps) learnKind(p apirequest.Target, kind string) {
	if p.Subresource == "" && kind != "" {
		t.kinds.Store(p.GVR(), kind)
	}
}

// named returns the reference of a request's target completed by the object in the body. The body of a subresource is
// an object of another kind.
func named(p apirequest.Target, o trace.Ref) trace.Ref {
	r := refOf(p)
	if p.Subresource != "" && p.Subresource != "status" {
		return r
	}
	r.Kind, r.Name, r.UID = orElse(o.Kind, r.Kind), orElse(o.Name, r.Name), o.UID
	return r
}

// kindOf returns the group, version and kind of a reference.
func kindOf(r trace.Ref) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// orElse returns s, or other if s is empty.
func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
