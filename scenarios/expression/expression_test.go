package expression_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// read decodes YAML.
func read(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStringIsAsWrittenUnlessItIsAnExpression(t *testing.T) {
	cel := format.CompilerCEL
	scope := expression.Scope{}.With("name", "Doko").With("n", 4.0)
	for _, c := range []struct{ in, want, fails string }{
		{in: "", want: ""},
		{in: "plain", want: "plain"},
		{in: "($name)", want: "Doko"},
		{in: "(jp;$name)", want: "Doko"},
		{in: `(cel;bindings.resolve("name"))`, want: "Doko"},
		{in: `\($name)\`, want: "($name)"},
		{in: "(join('-', [$name, 'Zun']))", want: "Doko-Zun"},
		{in: "(other;$name)", want: "$name"},
		{in: "($n)", fails: "didn't evaluate to a string"},
		{in: "($nothing)", fails: "variable not defined: $nothing"},
		{in: "(k8s_get())", fails: "it is called x_k8s_get"},
		{in: "(][)", fails: "SyntaxError"},
	} {
		got, err := scope.String(t.Context(), c.in)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s gives the error %v, want %q", c.in, err, c.fails)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s gives %q and %v, want %q", c.in, got, err, c.want)
		}
	}
	got, err := scope.WithCompiler(&cel).String(t.Context(), `(bindings.resolve("name") + "!")`)
	if err != nil || got != "Doko!" {
		t.Errorf("the default compiler CEL gives %q and %v", got, err)
	}
}

func TestWithHidesAndLeavesTheOldScopeAlone(t *testing.T) {
	outer := expression.Scope{}.With("a", 1)
	inner := outer.With("a", 2)
	for want, scope := range map[int]expression.Scope{1: outer, 2: inner} {
		if got, ok := scope.Lookup("a"); !ok || got != want {
			t.Errorf("a is %v, want %d", got, want)
		}
	}
	if _, ok := inner.Lookup("b"); ok {
		t.Error("b is bound")
	}
}

func TestTemplateFillsInExpressions(t *testing.T) {
	scope := expression.Scope{}.With("n", 3.0)
	object := read(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {x: y}}
data:
  sum: (to_string($n))
  kept: \(raw)\
  cel: (cel; "a" + "b")
  list: ['(to_string($n))', b]
`).(map[string]any)
	got, err := scope.Object(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {x: y}}
data: {sum: "3", kept: '\(raw)\', cel: ab, list: ["3", b]}
`)
	if diff := cmp.Diff(want, any(got)); diff != "" {
		t.Error(diff)
	}
	if object["data"].(map[string]any)["sum"] != "(to_string($n))" {
		t.Error("the template itself was changed")
	}
}

func TestMergeLaysATemplateOverAnObject(t *testing.T) {
	object := read(t, `{metadata: {name: ns, labels: {a: b}}}`).(map[string]any)
	got, err := expression.Scope{}.Merge(t.Context(), object, read(t, `{metadata: {labels: {c: (to_upper('d'))}, name: "(join('-', [@, 'x']))"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(t, `{metadata: {name: ns-x, labels: {a: b, c: D}}}`), any(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := (expression.Scope{}).Merge(t.Context(), object, "text"); err == nil {
		t.Error("a text was taken for an object")
	}
}

func TestReferenceEvaluatesOnlyWhatNamesTheObject(t *testing.T) {
	scope := expression.Scope{}.With("name", "web")
	tree := read(t, `
apiVersion: (join('/', ['apps', 'v1']))
kind: Deployment
metadata:
  name: ($name)
  labels: {app: ($name)}
  annotations: {(length(@)): 3}
spec: {(replicas > $name): true}
`).(map[string]any)
	got, err := scope.Reference(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
  annotations: {(length(@)): 3}
spec: {(replicas > $name): true}
`)
	if diff := cmp.Diff(want, any(got)); diff != "" {
		t.Error(diff)
	}
	free := map[string]any{"($foo)": "bar"}
	if got, err := scope.Reference(t.Context(), free); err != nil || !cmp.Equal(got, free) {
		t.Errorf("what names no object became %v, %v", got, err)
	}
}

func TestCheck(t *testing.T) {
	scope := expression.Scope{}.With("n", 2.0)
	value := read(t, `
spec: {replicas: 2, names: [a, b], containers: [{name: x, ports: [1, 2]}, {name: z, ports: []}]}
`)
	for _, c := range []struct{ tree, different string }{
		{tree: `{spec: {replicas: 2}}`},
		{tree: `{spec: {replicas: ($n)}}`},
		{tree: `{spec: {(replicas > ` + "`1`" + `): true}}`},
		{tree: `{spec: {names: [a, b]}}`},
		{tree: `{spec: {(length(names)): 2}}`},
		{tree: `{spec: {'~.containers': {name: {}}}}`, different: ""},
		{tree: `{spec: {'~i.(containers)->all': {(length($all)): 2, (name == 'x' || $i > ` + "`0`" + `): true}}}`},
		{tree: `{(cel; object.spec.replicas == 2): true}`},
		{tree: `{spec: {replicas: 3}}`, different: "spec.replicas"},
		{tree: `{spec: {names: [a]}}`, different: "spec.names"},
		{tree: `{spec: {paused: true}}`, different: "spec.paused"},
		{tree: `{spec: {'~.containers': {name: x}}}`, different: "spec.~.containers[1].name"},
	} {
		got, err := scope.Check(t.Context(), read(t, c.tree), value)
		if err != nil {
			t.Errorf("%s: %v", c.tree, err)
			continue
		}
		switch {
		case c.different == "" && len(got) > 0:
			t.Errorf("%s differs: %v", c.tree, got)
		case c.different != "" && (len(got) != 1 || got[0].Field != c.different):
			t.Errorf("%s differs in %v, want %s", c.tree, got, c.different)
		}
	}
}

func TestErrorsOfTheTreeItselfAreInvalid(t *testing.T) {
	for tree, invalid := range map[string]bool{
		`{(foo(@)): 1}`:       true,
		`{($missing): 1}`:     true,
		`{'(a[)': 1}`:         true,
		`{(cel;nothing): 1}`:  true,
		`{(length(none)): 1}`: false,
	} {
		_, err := expression.Scope{}.Check(t.Context(), read(t, tree), map[string]any{"a": "b"})
		if err == nil {
			t.Errorf("%s is no error", tree)
			continue
		}
		if got := errors.As(err, new(*expression.Invalid)); got != invalid {
			t.Errorf("%s: %v is invalid: %v, want %v", tree, err, got, invalid)
		}
	}
}

func TestExpectTakesOnlyWhatIsMeant(t *testing.T) {
	object := read(t, `{kind: ConfigMap, metadata: {name: a}}`)
	failed := expression.Scope{}.With("error", "no")
	for _, c := range []struct {
		name, match, check string
		matched, fails     bool
	}{
		{"none for this object", `{kind: Secret}`, `{($error): null}`, false, false},
		{"the error is wanted", `{kind: ConfigMap}`, `{($error): 'no'}`, true, false},
		{"the error is not wanted", `null`, `{($error): null}`, true, true},
		{"the expression is wrong", `null`, `{(wrong()): null}`, true, true},
	} {
		matched, err := failed.Expect(t.Context(), object, []format.Expectation{{Match: read(t, c.match), Check: read(t, c.check)}})
		if matched != c.matched || (err != nil) != c.fails {
			t.Errorf("%s: matched %v, error %v", c.name, matched, err)
		}
	}
}

func TestOutputsSeeThoseBeforeThem(t *testing.T) {
	binding := func(name, value string) format.Binding {
		return format.Binding{Name: format.Expression(name), Value: value}
	}
	got, err := expression.Scope{}.With("p", "first").Outputs(t.Context(), read(t, `{kind: A}`), []format.Output{
		{Binding: binding("(join('', [$p, 'Name']))", "(kind)")},
		{Binding: binding("second", "(join('-', [$firstName, 'x']))")},
		{Binding: binding("left", "(kind)"), Match: read(t, `{kind: B}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]expression.Named{{Name: "firstName", Value: "A"}, {Name: "second", Value: "A-x"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBindingsAreNumbersAsJMESPathWantsThem(t *testing.T) {
	scope, err := expression.Scope{}.BindAll(t.Context(), []format.Binding{
		{Name: "all", Value: []any{int64(1), int64(2)}}, {Name: "total", Value: "(sum($all))"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := scope.Lookup("total"); got != 3.0 {
		t.Errorf("the sum is %v", got)
	}
	if _, err := scope.BindAll(t.Context(), []format.Binding{{Name: "a-b", Value: "c"}}); err == nil {
		t.Error("a name that is no word was taken")
	}
}

func TestCompareShowsOnlyWhatIsAsserted(t *testing.T) {
	tree := read(t, `
spec: {replicas: 3, (length(names)): 2, '~.items': {ok: true}, gone: {a: 1}, same: ['(to_upper(@))']}
`)
	value := read(t, `
metadata: {name: x}
spec: {replicas: 2, names: [a], other: 1, items: [{ok: true, n: 1}, {ok: false, n: 2}], same: [A]}
`)
	asserted, found, err := expression.Scope{}.Compare(t.Context(), tree, value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(t, `
spec: {replicas: 3, (length(names)): 2, '~.items': [{ok: true}, {ok: true}], gone: {a: 1}, same: [A]}
`), asserted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(read(t, `
spec: {replicas: 2, (length(names)): 1, '~.items': [{ok: true}, {ok: false}], same: [A]}
`), found); diff != "" {
		t.Error(diff)
	}
}

func TestChainsawsFunctions(t *testing.T) {
	t.Setenv("EXPRESSION_TEST", "here")
	scope := expression.Scope{}.With("client", fakeCluster{}).With("metrics", "# TYPE b counter\nb{code=\"500\"} 2\na 1\n")
	for in, want := range map[string]any{
		`(env('EXPRESSION_TEST'))`: "here",
		`(trim_space('  a '))`:     "a",
		`(as_string('a'))`:         "a",
		"(as_string(`1`))":         nil,
		`(x_k8s_get($client, 'v1', 'Pod', 'ns', 'web').metadata.name)`:          "web",
		`(x_k8s_exists($client, 'v1', 'Pod', 'ns', 'web'))`:                     true,
		`(x_k8s_list($client, 'v1', 'Pod').items | length(@))`:                  1.0,
		`(x_k8s_list($client, 'v1', 'Pod', 'none').items | length(@))`:          0.0,
		`(x_k8s_resource_exists($client, 'v1', 'Pod'))`:                         true,
		`(x_metrics_decode($metrics)[?as_string(metric.code) == '500'].value)`:  []any{2.0},
		`(x_metrics_decode($metrics)[].as_string(metric.__name__))`:             []any{"a", "b"},
		`(cel; ip("127.0.0.1").isLoopback() && [{"a": 1}].size() == 1)`:         true,
		`(cel; [{"a": [1, 2]}])`:                                                []any{map[string]any{"a": []any{int64(1), int64(2)}}},
		`(x_k8s_list($client, 'v1', 'Pod').items[0].metadata.name | length(@))`: 3.0,
	} {
		got, err := scope.Template(t.Context(), in, nil)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
	for _, in := range []string{"(x_k8s_get('a', 'v1', 'Pod', 'ns', 'web'))", "(x_k8s_server_version('a'))", "(x_metrics_decode('{'))", "(trim_space(`1`))"} {
		if got, err := scope.Template(t.Context(), in, nil); err == nil {
			t.Errorf("%s gives %v", in, got)
		}
	}
	if all := expression.Functions(); !slices.Contains(all, "x_k8s_get") || !slices.Contains(all, "semver_compare") {
		t.Errorf("the functions are %v", all)
	}
}

// fakeCluster has one pod.
type fakeCluster struct{}

func (fakeCluster) GetObject(_ context.Context, _, _, _, name string) (map[string]any, error) {
	return map[string]any{"metadata": map[string]any{"name": name}}, nil
}

func (f fakeCluster) ListObjects(ctx context.Context, _, _, namespace string) (map[string]any, error) {
	if namespace != "" {
		return map[string]any{"items": []any{}}, nil
	}
	pod, err := f.GetObject(ctx, "", "", "", "web")
	return map[string]any{"items": []any{pod}}, err
}

func (fakeCluster) ServesKind(context.Context, string, string) (bool, error) { return true, nil }
