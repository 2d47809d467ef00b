package tui

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestPackageOf(t *testing.T) {
	subscription := func(apiVersion string) *trace.Object {
		return &trace.Object{Ref: trace.Ref{APIVersion: apiVersion, Kind: "Subscription"}, Raw: []byte(`{"spec": {"name": "cafe"}}`)}
	}
	for o, want := range map[*trace.Object]string{
		nil: "", subscription("operators.coreos.com/v1alpha1"): "cafe", subscription("messaging.knative.dev/v1"): "",
	} {
		if got := packageOf(o); got != want {
			t.Errorf("%+v is of the package %q, want %q", o, got, want)
		}
	}
}

// version returns a ClusterServiceVersion with examples, of an operator that watches namespaces.
func version(tb testing.TB, examples, namespaces string) *trace.Object {
	tb.Helper()
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"alm-examples": examples, "olm.targetNamespaces": namespaces,
	}}})
	if err != nil {
		tb.Fatal(err)
	}
	return &trace.Object{Ref: trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}, Raw: raw}
}

// TestExamples creates an example of a ClusterServiceVersion as it was left by the editor, or nothing if that left nothing.
func TestExamples(t *testing.T) {
	const cafe = `{"kind": "Cafe", "apiVersion": "example.com/v1", "metadata": {"name": "corner"}, "spec": {"size": 1}}`
	for namespaces, want := range map[string]string{"": "default", "team": "team", "one,two": "one"} {
		all := examplesOf(version(t, "["+cafe+"]", namespaces))
		text := "apiVersion: example.com/v1\nkind: Cafe\nmetadata:\n  name: corner\n  namespace: " + want + "\nspec:\n  size: 1\n"
		if len(all) != 1 || all[0].ref.Name != "corner" || string(all[0].text) != text {
			t.Errorf("with %q: %v", namespaces, all)
		}
	}
	if all := examplesOf(version(t, `[{"kind": "Cafe", "metadata": {"name": "a", "namespace": "mine"}}]`, "team")); len(all) != 1 || all[0].ref.Namespace != "mine" {
		t.Errorf("its own namespace is not kept: %v", all)
	}
	for _, broken := range []string{"", "{", cafe, "[{}]", "[1]"} {
		if all := examplesOf(version(t, broken, "")); len(all) > 0 {
			t.Errorf("of %q: %v", broken, all)
		}
	}

	b := newBench(t, story())
	of := examplesOf(version(t, "["+cafe+"]", ""))[0]
	for text, want := range map[string][]string{"kind: Cafe\n": {"create kind: Cafe\n"}, " \n": nil} {
		b.cluster.calls = nil
		msg := b.create(of.ref, of.text)().(editMsg)
		if err := os.WriteFile(msg.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.Update(b.edited(editedMsg{msg, nil})())
		if !slices.Equal(b.cluster.calls, want) || strings.Contains(b.flash, "Cafe corner: done") != (want != nil) {
			t.Errorf("of %q it asks %q, and says %q", text, b.cluster.calls, b.flash)
		}
	}
}
