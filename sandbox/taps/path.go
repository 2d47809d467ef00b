package taps

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// path is the parsed path of a request to the API server.
type path struct {
	apiVersion, namespace, resource, name, subresource string
}

// parsePath parses a request's path; ok is false for discovery and other paths without a resource.
func parsePath(s string) (p path, ok bool) {
	parts := strings.Split(strings.Trim(s, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		p.apiVersion, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		p.apiVersion, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return p, false
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "finalize" && parts[2] != "status" {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	if len(parts) > 1 {
		p.name = parts[1]
	}
	if len(parts) > 2 {
		p.subresource = strings.Join(parts[2:], "/")
	}
	return p, true
}

// ref returns the path's reference; its kind is the resource until an object shows the kind.
func (p path) ref() trace.Ref {
	return trace.Ref{
		APIVersion: p.apiVersion, Kind: p.resource, Namespace: p.namespace, Name: p.name, Subresource: p.subresource,
	}
}

// resourceKey identifies a resource, whose kind a path does not have.
type resourceKey struct{ apiVersion, resource string }

// refOf returns a path's reference, with its kind if an earlier answer had it: the answer to a deletion has none.
func (t *Taps) refOf(p path) trace.Ref {
	r := p.ref()
	if kind, ok := t.kinds.Load(resourceKey{p.apiVersion, p.resource}); ok && p.subresource == "" {
		r.Kind, _ = kind.(string)
	}
	return r
}

// learnKind remembers the kind in an answer about an object itself, not about a subresource.
func (t *Taps) learnKind(p path, kind string) {
	if p.subresource == "" && kind != "" {
		t.kinds.Store(resourceKey{p.apiVersion, p.resource}, kind)
	}
}

// named returns the path's reference completed by the object in the body. The body of a subresource is an object of
// another kind.
func (p path) named(o trace.Ref) trace.Ref {
	r := p.ref()
	if p.subresource != "" && p.subresource != "status" {
		return r
	}
	r.Kind, r.Name, r.UID = orElse(o.Kind, r.Kind), orElse(o.Name, r.Name), o.UID
	return r
}

// wireVerb returns a request's verb; empty for watches and methods that the API does not have.
func wireVerb(req *http.Request, p path) string {
	switch req.Method {
	case http.MethodPost:
		return trace.VerbCreate
	case http.MethodPut:
		return trace.VerbUpdate
	case http.MethodPatch:
		if strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch") {
			return trace.VerbApply
		}
		return trace.VerbPatch
	case http.MethodDelete:
		if p.name == "" {
			return trace.VerbDeleteAll
		}
		return trace.VerbDelete
	case http.MethodGet:
		switch q := req.URL.Query(); {
		case q.Get("watch") == "true" || q.Get("watch") == "1":
			return ""
		case p.name == "":
			return trace.VerbList
		}
		return trace.VerbGet
	}
	return ""
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
