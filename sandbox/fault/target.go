package fault

import (
	"net/http"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// exempt reports whether faults never apply to a target: the machinery of operators, not their own calls.
func exempt(t apirequest.Target) bool {
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

// verbOf returns the verb by which faults know a request. The delete of a collection is a delete to them.
func verbOf(req *http.Request, t apirequest.Target) string {
	verb := apirequest.Verb(req, t)
	if verb == trace.VerbDeleteAll {
		return trace.VerbDelete
	}
	return verb
}
