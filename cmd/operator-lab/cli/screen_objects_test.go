package cli

import (
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestObjectOf checks that what the person deletes is known by its UID: by it the screen finds what it was, and what replaces it.
func TestObjectOf(t *testing.T) {
	ref := trace.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "a", UID: "u"}
	o := objectOf(ref)
	if got := (trace.Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID())}); got != ref {
		t.Errorf("%+v of %+v", got, ref)
	}
}
