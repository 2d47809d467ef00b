package apirequest_test

import (
	"net/http/httptest"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
)

func TestParse(t *testing.T) {
	type target = apirequest.Target
	for _, test := range []struct {
		method, url, content string
		want                 target
		verb                 string // empty: not a request for a resource
	}{
		{"GET", "/api", "", target{}, ""},
		{"GET", "/api/v1", "", target{}, ""},
		{"GET", "/apis/apps/v1", "", target{}, ""},
		{"GET", "/healthz", "", target{}, ""},
		{"GET", "/api/v1/pods", "", target{Version: "v1", Resource: "pods"}, "list"},
		{"GET", "/api/v1/pods?watch=1", "", target{Version: "v1", Resource: "pods"}, "watch"},
		{"GET", "/api/v1/pods?watch=true", "", target{Version: "v1", Resource: "pods"}, "watch"},
		{"GET", "/api/v1/pods?watch=false", "", target{Version: "v1", Resource: "pods"}, "list"},
		{"GET", "/api/v1/namespaces/a/pods/b?watch=true", "", target{Version: "v1", Resource: "pods", Namespace: "a", Name: "b"}, "watch"},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "", target{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a"}, "create"},
		{"PUT", "/apis/apps/v1/namespaces/a/deployments/b/status", "", target{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a", Name: "b", Subresource: "status"}, "update"},
		{"PATCH", "/api/v1/nodes/n", "application/merge-patch+json", target{Version: "v1", Resource: "nodes", Name: "n"}, "patch"},
		{"PATCH", "/api/v1/nodes/n", "application/apply-patch+yaml", target{Version: "v1", Resource: "nodes", Name: "n"}, "apply"},
		{"DELETE", "/api/v1/namespaces/a/pods", "", target{Version: "v1", Resource: "pods", Namespace: "a"}, "deletecollection"},
		{"DELETE", "/api/v1/namespaces/a", "", target{Version: "v1", Resource: "namespaces", Name: "a"}, "delete"},
		{"PUT", "/api/v1/namespaces/a/finalize", "", target{Version: "v1", Resource: "namespaces", Name: "a", Subresource: "finalize"}, "update"},
		{"GET", "/api/v1/namespaces/a/pods/b/proxy/x/y", "", target{Version: "v1", Resource: "pods", Namespace: "a", Name: "b", Subresource: "proxy/x/y"}, "get"},
		{"OPTIONS", "/api/v1/pods", "", target{Version: "v1", Resource: "pods"}, ""},
	} {
		req := httptest.NewRequest(test.method, test.url, nil)
		req.Header.Set("Content-Type", test.content)
		got, ok := apirequest.Parse(req.URL.Path)
		if !ok {
			if test.want != (target{}) {
				t.Errorf("%s is not recognized", test.url)
			}
			continue
		}
		if got != test.want {
			t.Errorf("%s: %+v", test.url, got)
		}
		if verb := apirequest.Verb(req, got); verb != test.verb {
			t.Errorf("%s %s: verb %q, want %q", test.method, test.url, verb, test.verb)
		}
	}
}
