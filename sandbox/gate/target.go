package gate

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

// resource returns the group and the plural name of a kind.
func (t Target) resource() schema.GroupResource {
	return schema.GroupResource{Group: t.Group, Resource: t.Resource}
}

// GVR returns the group, version and resource.
func (t Target) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
}

// path returns the path of the resource in a namespace, without a name.
func (t Target) path(namespace string) string {
	p := "/apis/" + t.Group + "/" + t.Version
	if t.Group == "" {
		p = "/api/" + t.Version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	return p + "/" + t.Resource
}

// parseTarget parses a request's path; ok is false for discovery and other paths without a resource.
func parseTarget(path string) (t Target, ok bool) {
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

// exempt reports whether faults never apply to a target: the machinery of operators, not their own calls.
func (t Target) exempt() bool {
	switch t.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "events.k8s.io", "operator-lab.dev":
		return true
	case "coordination.k8s.io":
		return t.Resource == "leases"
	case "":
		if t.Resource == "events" {
			return true
		}
	}
	switch t.Subresource {
	case "attach", "exec", "portforward", "token":
		return true
	}
	return t.Subresource == "proxy" || strings.HasPrefix(t.Subresource, "proxy/")
}

// isWatch reports whether a request opens a watch stream.
func isWatch(req *http.Request) bool {
	if req.Method != http.MethodGet || !strings.Contains(req.URL.RawQuery, "watch=") {
		return false
	}
	watch := req.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// verbOf returns a request's Kubernetes verb; empty for methods that the API does not have.
func verbOf(req *http.Request, t Target) string {
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
		return trace.VerbDelete
	case http.MethodGet:
		if t.Name == "" {
			return trace.VerbList
		}
		return trace.VerbGet
	}
	return ""
}
