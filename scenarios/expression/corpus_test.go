package expression_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/scenarios/expression"
)

// TestCorpus holds the pinned libraries to what expressions are documented to mean, so that another commit of them that
// gives one another meaning is noticed.
func TestCorpus(t *testing.T) {
	t.Setenv("EXPRESSION_TEST", "here")
	raw, err := os.ReadFile(filepath.Join("testdata", "corpus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Input       any
		Expressions []struct {
			In    string
			Want  any
			Fails *string // a part of the error
		}
		Trees []struct {
			Tree    any
			Differs string
		}
	}
	if err := yaml.UnmarshalStrict(raw, &corpus); err != nil {
		t.Fatal(err)
	}
	before := plain(t, corpus.Input)
	scope := expression.Scope{}.With("bound", "yes-it-is")
	shown := map[string]bool{}
	for _, c := range corpus.Expressions {
		for _, name := range expression.Functions() {
			shown[name] = shown[name] || strings.Contains(" "+c.In, name+"(")
		}
		got, err := scope.Template(t.Context(), "("+c.In+")", corpus.Input)
		if c.Fails != nil {
			if err == nil || !strings.Contains(err.Error(), *c.Fails) {
				t.Errorf("%s gives %v and %v, want an error with %q", c.In, got, err, *c.Fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.In, err)
		} else if diff := cmp.Diff(c.Want, plain(t, got)); diff != "" {
			t.Errorf("%s: %s", c.In, diff)
		}
	}
	for _, name := range expression.Functions() {
		if !shown[name] && !strings.HasPrefix(name, "x_") { // those of a cluster are in TestChainsawsFunctions
			t.Errorf("the corpus has no example of %s", name)
		}
	}
	if diff := cmp.Diff(before, corpus.Input); diff != "" {
		t.Errorf("an expression has changed its input: %s", diff)
	}
	for _, c := range corpus.Trees {
		got, err := scope.Check(t.Context(), c.Tree, corpus.Input)
		var fields []string
		for _, e := range got {
			fields = append(fields, e.Field)
		}
		if want := slices.DeleteFunc([]string{c.Differs}, func(s string) bool { return s == "" }); err != nil || !slices.Equal(fields, want) {
			t.Errorf("%v differs in %q (%v), want %q", c.Tree, fields, err, want)
		}
	}
}

// plain is a copy of a value as JSON has it: a number is a number, whatever its type.
func plain(t *testing.T, value any) (out any) {
	t.Helper()
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
