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
