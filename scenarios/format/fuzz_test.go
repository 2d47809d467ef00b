package format

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// seeds are the first inputs of fuzzing.
var seeds = []string{
	"",
	"---\n# a\n---\n",
	head + "  steps: []\n---\n" + head + "  skip: yes\n  steps: []\n",
	operation + "apply: {file: x.yaml, template: false, outputs: [{name: a, value: (@), match: {a: (b)}}]}\n",
	operation + "assert: {resource: {kind: A, '(a) -> b': {'~i.c': 1}, \"~.(d)\": (cel; e)}, timeout: 1m30s}\n",
	operation + "wait: {apiVersion: v1, kind: Pod, for: {jsonPath: {path: '{.a}', value: b}}}\n      compiler: cel\n",
	step + "use: {template: t.yaml, with: {bindings: [{name: (a), value: [1, 1.5, ~, 'x']}]}}\n",
	step + "try: [{script: {content: |\n      a\n      b\n}}]\n    catch: [{events: {}}, {podLogs: {tail: 5}}]\n",
	operation + "apply: {resource: {<<: &a {kind: A, b: 1}, c: *a, d: {<<: [*a]}}}\n",
	head + "  bindings: [{name: a, value: &x [*x]}]\n  steps: []\n",
	head + "  timeouts: {apply: 5, tmeout: 1s}\n  steps:\n\t- a\n",
	"apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t, labels: {a/b/c: d}, annotations: {operator-lab.dev/stays.x: 5s}}\nspec: {steps: [{name: x}]}\n",
	"\ufeff{\"kind\": \"Test\", 1: [\"\\u0000\"]}",
	"a: b\n--- c\n...\n%YAML 1.1\n",
}

// FuzzLoad: whatever is in a file, it is loaded or there is a problem, which is in the file.
func FuzzLoad(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, remarshal bool) {
		files := tree(map[string]string{"chainsaw-test.yaml": string(data), "x.yaml": string(data), "t.yaml": string(data)})
		found, err := Discover(Discovery{FS: files, Remarshal: remarshal})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatal("nothing was loaded, and nothing is wrong")
		}
		for _, l := range found {
			if l.Test == nil {
				t.Fatal("no test")
			}
			if l.Err == nil && (l.Test.Name == "" && l.Test.GenerateName == "" || l.Test.Spec.Steps == nil) {
				t.Fatalf("loaded without a name or steps: %+v", l.Test)
			}
		}
		most := 2
		for _, r := range string(data) {
			if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) {
				most++
			}
		}
		for _, p := range Lint(Discovery{FS: files, Remarshal: remarshal}) {
			if p.Message == "" || p.File == "" || p.Line < 0 || p.Line > most || p.Column < 0 {
				t.Fatalf("%+v, of %d lines", p, most)
			}
		}
		if _, err := json.Marshal(found[0].Test); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzValues: what is read has the value that the YAML reader of Kubernetes gives it, which Chainsaw uses.
func FuzzValues(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The parser does not tell of a "!" before a value, which makes it a text; nobody writes that.
		docs, wrong := parse("f.yaml", data)
		if len(wrong) > 0 || len(docs) != 1 || bytes.Contains(data, []byte("---")) || bytes.ContainsAny(data, "!") {
			return
		}
		r := newReader("f.yaml", docs[0])
		v := r.any(docs[0].root, nil)
		if len(r.problems) > 0 {
			return
		}
		got, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := yaml.YAMLToJSONStrict(data)
		if err != nil {
			return // it is newer YAML than that reader knows
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil {
			t.Fatal("not JSON")
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%q is %s, Kubernetes reads %s", data, got, want)
		}
	})
}
