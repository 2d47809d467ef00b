//go:build go1.23

// Package apirequest reads from an HTTP request to an API server which object or collection it is for, and what it does
// with it.
package apirequest

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Target identifies the object or collection of a request.
type Target struct {
	// Group, Version and Resource name the resource; Group is empty for the core group, Resource is the plural.
	Group, Version, Resource string
	// Namespace, Name and Subresource are empty where the path has none.
	Namespace, Name, Subresource string
}

// Parse parses a request's path; ok is false for discovery and other paths without a resource.
func Parse(path string) (t Target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	// The path of a namespace itself may have a subresource too.
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "finalize" && parts[2] != "status" {
		t.Namespace, parts = parts[1], parts[2:]
	}
	t.Resource = parts[0]
	if len(parts) > 1 {
		t.Name = parts[1]
	}
	if len(parts) > 2 {
		t.Subresource = strings.Join(parts[2:], "/")
	}
	return t, true
}

// GroupVersion returns the group and version of the resource.
func (t Target) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: t.Group, Version: t.Version}
}

// GroupResource returns the group and the plural name of the resource.
func (t Target) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.Group, Resource: t.Resource}
}

// GVR returns the group, version and plural name of the resource.
func (t Target) GVR() schema.GroupVersionResource {
	return t.GroupVersion().WithResource(t.Resource)
}

// Path returns the path of the resource in a namespace, without a name. Without a namespace it is that of all.
func (t Target) Path(namespace string) string {
	p := "/apis/" + t.Group + "/" + t.Version
	if t.Group == "" {
		p = "/api/" + t.Version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	return p + "/" + t.Resource
}

// Verb returns the verb of a request, such as [trace.VerbDeleteAll] for the delete of a collection; empty for methods
// that the API does not have.
func Verb(req *http.Request, t Target) string {
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
		if t.Name == "" {
			return trace.VerbDeleteAll
		}
		return trace.VerbDelete
	case http.MethodGet:
		switch {
		case IsWatch(req):
			return trace.VerbWatch
		case t.Name == "":
			return trace.VerbList
		}
		return trace.VerbGet
	}
	return ""
}

// IsWatch reports whether a request opens a watch stream.
func IsWatch(req *http.Request) bool {
	if req.Method != http.MethodGet || !strings.Contains(req.URL.RawQuery, "watch=") {
		return false
	}
	watch := req.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}
