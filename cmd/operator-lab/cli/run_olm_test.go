package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox"
)

// TestNotInstalled checks what is said of the objects of OLM that do not get on, and that nothing is said of others.
func TestNotInstalled(t *testing.T) {
	for name, c := range map[string]struct{ resource, status, want string }{
		"under way":     {"clusterserviceversions", `{"phase": "Installing"}`, ""},
		"not yet":       {"clusterserviceversions", `{"phase": "Pending", "reason": "NeedsReinstall"}`, ""},
		"carried out":   {"installplans", `{"phase": "Complete"}`, ""},
		"resolved":      {"subscriptions", `{"conditions": [{"type": "ResolutionFailed", "status": "False"}]}`, ""},
		"not resolved":  {"subscriptions", `{"conditions": [{"type": "ResolutionFailed", "status": "True", "message": "no such channel"}]}`, "OLM cannot resolve the Subscription x: no such channel"},
		"plan failed":   {"installplans", `{"phase": "Failed", "conditions": [{"message": "forbidden"}, {}, {"message": "again"}]}`, "the InstallPlan x failed: forbidden; again"},
		"requirements":  {"clusterserviceversions", `{"phase": "Pending", "reason": "RequirementsNotMet", "message": "no role"}`, "the ClusterServiceVersion x is Pending, RequirementsNotMet: no role"},
		"not installed": {"clusterserviceversions", `{"phase": "Failed", "reason": "InstallCheckFailed", "message": "late"}`, "the ClusterServiceVersion x is Failed, InstallCheckFailed: late"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				items := ""
				if strings.HasSuffix(r.URL.Path, "/"+c.resource) {
					items = `{"metadata": {"name": "x"}, "status": ` + c.status + `}`
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"items": [` + items + `]}`)) // the client sees it
			}))
			defer server.Close()
			err := notInstalled(t.Context(), &rest.Config{Host: server.URL})
			switch {
			case c.want == "" && err != nil, c.want != "" && (err == nil || err.Error() != c.want):
				t.Errorf("got %v, want %q", err, c.want)
			case c.want != "" && !strings.Contains(sandbox.HintOf(err), "--keep"):
				t.Errorf("the hint is %q", sandbox.HintOf(err))
			}
		})
	}
}
