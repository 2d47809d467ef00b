package format

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// head begins a test; what follows is indented for its spec.
const head = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\nspec:\n"

// step is a test with one step; what follows are its fields.
const step = head + "  steps:\n  - "

// operation is a test with one operation; what follows it.
const operation = step + "try:\n    - "

// load loads one file with the text.
func load(text string) []*Loaded {
	l := newLoader(Discovery{FS: fstest.MapFS{"t.yaml": {Data: []byte(text)}}})
	return l.tests("t.yaml", ".")
}

// lines are the problems of everything that was loaded, each with its hint.
func lines(loaded []*Loaded) []string {
	var out []string
	for _, l := range loaded {
		if l.Err != nil {
			out = append(out, tell(l.Err.(Problems))...) //nolint:errorlint // it is what a Loaded has
		}
	}
	return out
}

// tell is a line for each problem.
func tell(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		line := p.Error()
		if p.Hint != "" {
			line += " | " + p.Hint
		}
		if p.Warning {
			line = "warning: " + line
		}
		out = append(out, line)
	}
	return out
}

func TestLoadBad(t *testing.T) {
	actions := "one of apply, assert, command, create, delete, describe, error, events, get, patch, podLogs, proxy, script, sleep, update, wait"
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown field": {
			head + "  timeouts: {tmeout: 5s, assrt: 5s}\n  steps: []\n",
			[]string{
				`t.yaml:5:14: unknown field "tmeout" in spec.timeouts | known are apply, assert, cleanup, delete, error, exec`,
				`t.yaml:5:26: unknown field "assrt" in spec.timeouts | did you mean "assert"?`,
			},
		},
		"unknown action": {
			operation + "aply: {file: x}\n",
			[]string{`t.yaml:7:7: unknown field "aply" in spec.steps[0].try[0] | did you mean "apply"?`},
		},
		"misspelt and missing": {
			head + "  stpes: []\n",
			[]string{`t.yaml:5:3: unknown field "stpes" in spec | did you mean "steps"?`},
		},
		"not indented": {
			operation + "apply:\n      file: x\n",
			[]string{`t.yaml:8:7: unknown field "file" in spec.steps[0].try[0] | it belongs in apply: indent it more`},
		},
		"operation beside try": {
			step + "apply: {file: x}\n",
			[]string{`t.yaml:6:5: unknown field "apply" in spec.steps[0] | operations are items of try`},
		},
		"unquoted on": {
			operation + "script: {on: 1}\n",
			[]string{`t.yaml:7:16: unknown field "true" in spec.steps[0].try[0].script | unquoted, YAML reads on as true: put it in quotes`},
		},
		"no action":        {operation + "description: x\n", []string{"t.yaml:7:7: nothing to do in spec.steps[0].try[0] | " + actions}},
		"two actions":      {operation + "apply: {file: x}\n      assert: {file: x}\n", []string{"t.yaml:7:7: apply and assert are in one operation in spec.steps[0].try[0] | make each an item of the list"}},
		"no file":          {operation + "assert: {timeout: 5s}\n", []string{"t.yaml:7:15: file or resource is missing in spec.steps[0].try[0].assert"}},
		"file is empty":    {operation + "assert: {file: ''}\n", []string{"t.yaml:7:22: file is empty in spec.steps[0].try[0].assert"}},
		"file twice":       {operation + "assert: {file: x, resource: {}}\n", []string{"t.yaml:7:35: file and resource exclude each other in spec.steps[0].try[0].assert | leave one of them out"}},
		"delete nothing":   {operation + "delete: {}\n", []string{"t.yaml:7:15: file or ref is missing in spec.steps[0].try[0].delete"}},
		"no kind":          {operation + "apply: {resource: {apiVersion: v1}}\n", []string{"t.yaml:7:25: spec.steps[0].try[0].apply.resource has no kind | it needs apiVersion, kind and metadata.name"}},
		"assert a text":    {operation + "assert: {resource: x}\n", []string{`t.yaml:7:26: spec.steps[0].try[0].assert.resource must be an object, not the text "x"`}},
		"wait without for": {operation + "wait: {apiVersion: v1, kind: Pod}\n", []string{"t.yaml:7:13: for is missing in spec.steps[0].try[0].wait"}},
		"wait for nothing": {operation + "wait: {apiVersion: v1, kind: Pod, for: {}}\n", []string{"t.yaml:7:46: nothing to do in spec.steps[0].try[0].wait.for | one of creation, deletion, condition, jsonPath"}},
		"name and selector": {
			operation + "get: {apiVersion: v1, kind: Pod, name: a, selector: b}\n",
			[]string{"t.yaml:7:59: name and selector exclude each other in spec.steps[0].try[0].get | leave one of them out"},
		},
		"no steps":     {head + "  skip: true\n", []string{"t.yaml:5:3: steps is missing in spec"}},
		"steps null":   {head + "  steps: ~\n", []string{"t.yaml:5:3: steps is missing in spec"}},
		"steps a text": {head + "  steps: x\n", []string{`t.yaml:5:10: spec.steps must be a list, not the text "x"`}},
		"step null":    {head + "  steps: [~]\n", []string{"t.yaml:5:11: spec.steps[0] is null"}},
		"try is empty": {step + "try: []\n", []string{"t.yaml:6:10: spec.steps[0].try is empty"}},
		"use and try":  {step + "{use: {template: x}, try: [{sleep: {duration: 1s}}]}\n", []string{"t.yaml:6:5: use and try exclude each other in spec.steps[0] | make it a step of its own", "t.yaml:6:11: the step template x cannot be used: file does not exist"}},
		"skip a text":  {head + "  skip: 'true'\n  steps: []\n", []string{`t.yaml:5:9: spec.skip must be true or false, not the text "true" | write true or false without quotes`}},
		"number for text": {
			operation + "command: {entrypoint: 5, args: [1, a]}\n",
			[]string{
				`t.yaml:7:29: spec.steps[0].try[0].command.entrypoint must be a text, not the number 5 | put it in quotes: "5"`,
				`t.yaml:7:39: spec.steps[0].try[0].command.args[0] must be a text, not the number 1 | put it in quotes: "1"`,
			},
		},
		"text for number": {operation + "podLogs: {tail: '5'}\n", []string{`t.yaml:7:23: spec.steps[0].try[0].podLogs.tail must be a whole number, not the text "5" | write it without quotes`}},
		"duration without unit": {
			operation + "sleep: {duration: 5}\n",
			[]string{"t.yaml:7:25: spec.steps[0].try[0].sleep.duration must be a duration, not 5 | write it with its unit, such as 5s or 1m30s"},
		},
		"duration":            {operation + "sleep: {duration: soon}\n", []string{`t.yaml:7:25: spec.steps[0].try[0].sleep.duration must be a duration, not "soon" | write it with its unit, such as 5s or 1m30s`}},
		"compiler":            {head + "  compiler: jmes\n  steps: []\n", []string{`t.yaml:5:13: spec.compiler cannot be "jmes" | known are cel, jp`}},
		"propagation":         {head + "  deletionPropagationPolicy: background\n  steps: []\n", []string{`t.yaml:5:30: spec.deletionPropagationPolicy cannot be "background" | did you mean "Background"?`}},
		"format":              {operation + "events: {format: jason}\n", []string{`t.yaml:7:24: "jason" is not a format | json or yaml, or an expression in parentheses`}},
		"name of a binding":   {head + "  bindings: [{name: a.b, value: 1}]\n  steps: []\n", []string{`t.yaml:5:21: "a.b" is not a name of a binding | a name is letters, digits and _, or an expression in parentheses`}},
		"binding of null":     {head + "  bindings: [{name: a, value: ~}]\n  steps: []\n", []string{"t.yaml:5:14: value is missing in spec.bindings[0]"}},
		"expression in field": {operation + "apply: {file: (a b)}\n", []string{"t.yaml:7:21: (a b) is not an expression: expected ), received: a name | what is in parentheses is an expression; if it is a text, write a backslash before and after it"}},
		"prefix in field":     {operation + "apply: {file: (jp; a)}\n", []string{"t.yaml:7:21: (jp; a) is not an expression: unknown char: ';' | Chainsaw takes no prefix in this field, and only JMESPath"}},
		"expression in tree":  {operation + "assert: {resource: {(replicas > 3): true}}\n", []string{"t.yaml:7:27: (replicas > 3) is not an expression: invalid token: a number | in an expression a number is written in backticks: `3`"}},
		"value of a tree":     {operation + "script: {check: {a: b -> c, d: ~.e}}\n", []string{`t.yaml:7:27: b -> c is a value and not a key | only keys can end with "->" and a name, which keeps what was found`, `t.yaml:7:38: ~.e is a value and not a key | only keys can begin with "~.", which looks at every element`}},
		"kind":                {"apiVersion: v1\nkind: Test\n", []string{`t.yaml:1:13: apiVersion cannot be "v1" | apiVersion: chainsaw.kyverno.io/v1alpha1 and kind: Test are wanted`}},
		"no name":             {strings.Replace(head, "{name: t}", "{}", 1) + "  steps: []\n", []string{"t.yaml:3:11: metadata.name is missing"}},
		"no metadata":         {strings.Replace(head, "metadata: {name: t}\n", "", 1) + "  steps: []\n", []string{"t.yaml:1:1: metadata.name is missing"}},
		"name":                {strings.Replace(head, "name: t", "name: A b", 1) + "  steps: []\n", []string{`t.yaml:3:18: metadata.name cannot be "A b" | a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`}},
		"label":               {strings.Replace(head, "name: t", "name: t, labels: {a/b/c: d}", 1) + "  steps: []\n", nil},
		"a list":              {"- a\n", []string{"t.yaml:1:1: the document must be an object, not a list"}},
		"written twice":       {head + "  skip: true\n  skip: false\n  steps: []\n", []string{`t.yaml:6:3: "skip" is written twice | the first is in line 5`}},
		"twice in an object":  {operation + "apply: {resource: {kind: A, a: 1, a: 2}}\n", []string{`t.yaml:7:41: "a" is written twice | the first is in line 7`}},
		"merged and written":  {head + "  scenarios: [&a {name: x}, {<<: *a, name: z}]\n  steps: []\n", []string{`t.yaml:5:38: "name" is also merged in by << | with --remarshal the key that is written wins; Chainsaw wants that flag too`}},
		"contains itself":     {operation + "apply: {resource: &a {kind: A, b: *a}}\n", []string{`t.yaml:7:41: the anchor "a" contains itself`}},
		"merges itself":       {operation + "apply: {resource: &a {kind: A, b: {<<: *a}}}\n", nil},
		"infinite":            {operation + "apply: {resource: {kind: A, b: .inf}}\n", []string{"t.yaml:7:38: .inf is not a number that JSON has | put it in quotes if it is a text"}},
		"key":                 {operation + "apply: {resource: {kind: A, [a]: b}}\n", []string{"t.yaml:7:35: a key must be a text"}},
		"tab":                 {head + "\tsteps: []\n", []string{"t.yaml:5:1: a tab where YAML wants spaces | indent with spaces"}},
		"not YAML":            {head + "  description: a: b\n", []string{"t.yaml:5: not YAML: mapping values are not allowed in this context | a text with a colon and a space in it needs quotes, and keys of one object the same indentation"}},
		"not UTF-8":           {"# \xff\n", []string{"t.yaml:1:3: is not UTF-8 | save it as UTF-8"}},
		"UTF-16":              {"\xff\xfea\x00", []string{"t.yaml:1:1: is UTF-16 | save it as UTF-8"}},
		"control character":   {"a: b\n\x01", []string{`t.yaml:2:1: has the character U+0001, which YAML does not allow | write it as "\u0001" in double quotes if it is meant`}},
		"empty":               {"", []string{"t.yaml: there is no test in it | operator-lab new scenario writes one to begin with"}},
		"only comments":       {"# a\n---\n# b\n", []string{"t.yaml: there is no test in it | operator-lab new scenario writes one to begin with"}},
		"two in one":          {"a: b\n--- c\n", []string{"t.yaml:2:1: a second document begins here without a line that separates them | put --- on a line of its own"}},
		"unknown anchor":      {"a: *b\n", []string{"t.yaml:1: not YAML: unknown anchor 'b' referenced"}},
		"too large":           {strings.Repeat("# comment\n", MaxFileSize/10+1), []string{"t.yaml: is larger than 8 MiB | split it into several files, a pattern such as manifests/*.yaml names them all"}},
		"too deep":            {operation + "apply: {resource: {kind: A, b: " + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "}}\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := lines(load(test.text))
			if test.want == nil {
				t.Logf("%q", got)
				if len(got) == 0 {
					t.Error("there is no problem")
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLoadGood(t *testing.T) {
	tests := map[string]string{
		"BOM":                        "\ufeff" + head + "  steps: []\n",
		"CRLF":                       strings.ReplaceAll(head+"  steps: []\n", "\n", "\r\n"),
		"JSON":                       `{"apiVersion": "chainsaw.kyverno.io/v1alpha1", "kind": "Test", "metadata": {"name": "t"}, "spec": {"steps": []}}`,
		"separated":                  "---\n" + head + "  steps: []\n---\n",
		"null is nothing":            head + "  skip: ~\n  description:\n  steps: []\n",
		"yes is true":                head + "  skip: yes\n  steps: []\n",
		"alias":                      head + "  description: &a x\n  namespace: *a\n  steps: []\n",
		"merge":                      head + "  scenarios: [&a {name: x}, {<<: *a, bindings: []}]\n  steps: []\n",
		"text of unknown engine":     operation + "apply: {resource: {kind: A, b: (foo; bar)}}\n",
		"escaped":                    operation + "apply: {resource: {kind: A, b: '\\(a b)\\'}}\n",
		"lines are no expression":    operation + "apply: {resource: {kind: A, b: \"(a\\nb)\"}}\n",
		"other compiler":             operation + "{compiler: cel, apply: {resource: {kind: A, b: '(a ? b : c)'}}}\n",
		"compiler of the one before": operation + "{compiler: cel, sleep: {duration: 1s}}\n    - script: {check: {\"(a ? b : c)\": true}}\n",
		"compiler of a binding":      head + "  bindings: [{name: a, compiler: cel, value: '(a ? b : c)'}]\n  steps: []\n",
		"namespace":                  head + "  namespaceTemplateCompiler: cel\n  namespaceTemplate: {a: '(a ? b : c)'}\n  steps: []\n",
		"no template":                head + "  template: false\n  steps:\n  - try:\n    - apply: {resource: {kind: A, b: (a b)}}\n",
		"wait for two":               operation + "wait: {apiVersion: v1, kind: Pod, for: {deletion: {}, creation: {}}}\n",
		"timestamps":                 strings.Replace(head, "name: t", "name: t, creationTimestamp: 2020-01-01T00:00:00Z", 1) + "  steps: []\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if got := lines(load(text)); len(got) > 0 {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestLoadOthersStay(t *testing.T) {
	good := head + "  steps: []\n"
	got := load(good + "---\n" + head + "\ta\n---\n# nothing\n---\n" + head + "  foo: 1\n  steps: []\n---\n" + good)
	var summary []string
	for _, l := range got {
		summary = append(summary, fmt.Sprintf("%d %s %v", l.Line, l.Test.Name, l.Err != nil))
	}
	want := []string{"1 t false", "7  true", "15 t true", "22 t false"}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLoadPositionsAndValues(t *testing.T) {
	got := load(operation + `apply:
        timeout: 5s
        resource: {kind: A, a: 1, b: 1.5, c: yes, d: "yes"}
        outputs:
        - {name: o, value: {a: 1}, match: {a: 1}}
    catch:
    - events: {}
`)
	if got := lines(got); len(got) > 0 {
		t.Fatal(got)
	}
	s := got[0].Test.Spec.Steps[0]
	o := s.Try[0]
	for what, at := range map[string]string{
		"t.yaml:6:5":   s.Position.String(),
		"t.yaml:7:7":   o.Position.String(),
		"t.yaml:11:11": o.Apply.Outputs[0].Position.String(),
		"t.yaml:13:7":  s.Catch[0].Position.String(),
	} {
		if what != at {
			t.Errorf("want %s, got %s", what, at)
		}
	}
	if o.Type() != "apply" || s.Catch[0].Operation().Type() != "events" || len(o.Outputs()) != 1 || o.Apply.Timeout.Seconds() != 5 {
		t.Errorf("%+v", o.Apply)
	}
	want := map[string]any{"kind": "A", "a": int64(1), "b": 1.5, "c": true, "d": "yes"}
	if diff := cmp.Diff(want, o.Apply.Resource); diff != "" {
		t.Errorf("resource (-want +got)\n%s", diff)
	}
	out := o.Apply.Outputs[0]
	if diff := cmp.Diff([]any{map[string]any{"a": 1.0}, map[string]any{"a": int64(1)}}, []any{out.Value, out.Match}); diff != "" {
		t.Errorf("output (-want +got)\n%s", diff)
	}
}

func TestRemarshal(t *testing.T) {
	text := operation + "apply: {resource: {<<: &a {kind: A, b: 1}, b: 2, c: {<<: [{d: 1}, {d: 2}, *a]}, e: yes}}\n"
	l := newLoader(Discovery{FS: fstest.MapFS{"t.yaml": {Data: []byte(text)}}, Remarshal: true})
	got := l.tests("t.yaml", ".")
	if got := lines(got); len(got) > 0 {
		t.Fatal(got)
	}
	want := map[string]any{
		"kind": "A", "b": int64(2), "e": "yes",
		"c": map[string]any{"d": int64(1), "kind": "A", "b": int64(1)},
	}
	if diff := cmp.Diff(want, got[0].Test.Spec.Steps[0].Try[0].Apply.Resource); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Values are those that the YAML reader of Kubernetes makes, which Chainsaw uses.
func TestValuesAreThoseOfKubernetes(t *testing.T) {
	for _, text := range []string{
		"a: [y, n, yes, 'yes', on, OFF, 0777, 0o17, 1_000, 12:30, 2020-01-01, 0x1F, 1e3, .5, ~, null, '', -0, +1, 0b11, 1., 99999999999999999999]",
		"y: 1\n1: a\n1.5: b\nno: c\n", "a: !foo bar", "a: !!str 12", "a: !!binary aGk=", "a: |\n  b\n  c\n", "a: >-\n  b\n  c\n",
		"a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n", "a: \"\\u00e9\\n\"", "[1, {a: b}]", "a: {}\nb: []\nc:\n",
	} {
		want, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		docs, wrong := parse("t.yaml", []byte(text))
		if len(wrong) > 0 {
			t.Fatalf("%q: %v", text, wrong)
		}
		r := newReader("t.yaml", docs[0])
		got, err := json.Marshal(r.any(docs[0].root, nil))
		if err != nil || len(r.problems) > 0 {
			t.Fatalf("%q: %v %v", text, err, r.problems)
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
			t.Fatalf("%q: not JSON", text)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%q (-want +got)\n%s", text, diff)
		}
	}
}
