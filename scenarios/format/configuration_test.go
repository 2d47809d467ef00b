package format

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// write makes a file in a temporary folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// configuration is the text of one; what follows is its spec.
func configuration(version, spec string) string {
	return "apiVersion: chainsaw.kyverno.io/" + version + "\nkind: Configuration\nmetadata: {name: default}\nspec: " + spec + "\n"
}

func TestLoadConfiguration(t *testing.T) {
	three, second := 3, metav1.Duration{Duration: time.Second}
	with := func(change func(*ConfigurationSpec)) *Configuration {
		c := DefaultConfiguration()
		change(&c.Spec)
		return c
	}
	for name, c := range map[string]struct {
		text string
		want *Configuration
	}{
		"defaults": {configuration("v1alpha2", "{}"), DefaultConfiguration()},
		"defaults of old": {configuration("v1alpha1", "{}"), with(func(s *ConfigurationSpec) {
			s.Report = &ReportOptions{Name: "chainsaw-report"}
		})},
		"report": {configuration("v1alpha2", "{report: {path: x}}"), with(func(s *ConfigurationSpec) {
			s.Report = &ReportOptions{Format: ReportJSON, Path: "x", Name: "chainsaw-report"}
		})},
		"new": {
			configuration("v1alpha2", "{execution: {parallel: 3, failFast: true}, timeouts: {apply: 1s}, templating: {enabled: false}, namespace: {template: {a: 1}}, error: {catch: [{sleep: {duration: 1s}}]}}"),
			with(func(s *ConfigurationSpec) {
				s.Execution.Parallel, s.Execution.FailFast, s.Timeouts.Apply, s.Templating.Enabled = &three, true, second, false
				s.Namespace.Template = map[string]any{"a": 1.0}
				s.Error.Catch = []CatchFinally{{Sleep: &Sleep{Duration: second}}}
			}),
		},
		"old": {
			configuration("v1alpha1", "{parallel: 3, failFast: true, timeouts: {apply: 1s}, template: false, namespaceTemplate: {a: 1}, reportFormat: XML, testFile: x, catch: [{sleep: {duration: 1s}}]}"),
			with(func(s *ConfigurationSpec) {
				s.Execution.Parallel, s.Execution.FailFast, s.Timeouts.Apply, s.Templating.Enabled = &three, true, second, false
				s.Namespace.Template, s.Discovery.TestFile = map[string]any{"a": 1.0}, "x"
				s.Report = &ReportOptions{Format: ReportXML, Name: "chainsaw-report"}
				s.Error.Catch = []CatchFinally{{Sleep: &Sleep{Duration: second}}}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LoadConfiguration(write(t, "c.yaml", c.text))
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Spec.Error.Catch {
				got.Spec.Error.Catch[i].Position = Position{}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLoadConfigurationBad(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"several": {
			configuration("v1alpha2", "{execution: {parallel: 0}, report: {format: xml}, timeouts: {exec: 5}, foo: 1}"),
			[]string{
				"c.yaml:4:30: spec.execution.parallel must be at least 1, not 0",
				`c.yaml:4:51: spec.report.format cannot be "xml" | did you mean "XML"?`,
				"c.yaml:4:74: spec.timeouts.exec must be a duration, not 5 | write it with its unit, such as 5s or 1m30s",
				`c.yaml:4:78: unknown field "foo" in spec`,
			},
		},
		"two actions": {configuration("v1alpha1", "{catch: [{sleep: {duration: 1m}, events: {}}]}"), []string{"c.yaml:4:16: events and sleep are in one operation in spec.catch[0] | make each an item of the list"}},
		"no spec":     {"apiVersion: chainsaw.kyverno.io/v1alpha2\nkind: Configuration\nmetadata: {name: a}\n", []string{"c.yaml:1:1: spec is missing"}},
		"two":         {configuration("v1alpha2", "{}") + "---\n" + configuration("v1alpha2", "{}"), []string{"c.yaml: has 2 documents, one configuration is wanted"}},
		"empty":       {"", []string{"c.yaml: has 0 documents, one configuration is wanted"}},
		"version":     {configuration("v1", "{}"), []string{`c.yaml:1:13: apiVersion cannot be "chainsaw.kyverno.io/v1" | apiVersion: chainsaw.kyverno.io/v1alpha2 and kind: Configuration are wanted`}},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "c.yaml", c.text)
			t.Chdir(filepath.Dir(file))
			_, err := LoadConfiguration("c.yaml")
			wrong, ok := errors.AsType[Problems](err)
			if !ok {
				t.Fatalf("%v", err)
			}
			if diff := cmp.Diff(c.want, tell(wrong)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLoadConfigurationDefaultFile(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := LoadConfiguration("")
	if diff := cmp.Diff(DefaultConfiguration(), got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	if err := os.WriteFile(ConfigurationFile, []byte(configuration("v1alpha2", "{namespace: {name: here}}")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = LoadConfiguration(""); err != nil || got.Spec.Namespace.Name != "here" {
		t.Fatal(err, got)
	}
	if _, err = LoadConfiguration("none.yaml"); err == nil || err.Error() != "none.yaml: no such file or directory" {
		t.Fatal(err)
	}
}

func TestLoadValues(t *testing.T) {
	one := write(t, "1.yaml", "foo: {bar: baz, other: 1}\ntest: 42\nlist: [1]\n")
	two := write(t, "2.yaml", "# twice, the last wins\nfoo: {bar: 1}\nfoo: {bar: 2}\ntest: ~\nlist: [2]\n")
	empty := write(t, "3.yaml", "# nothing\n")
	got, err := LoadValues([]string{one, two, empty}, []string{"image.tag=01,a=1", "b={x,y}"}, []string{"image.id=01"})
	want := map[string]any{
		"foo": map[string]any{"bar": 2.0, "other": 1.0}, "test": nil, "list": []any{2.0},
		"image": map[string]any{"tag": "01", "id": "01"}, "a": int64(1), "b": []any{"x", "y"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestLoadValuesBad(t *testing.T) {
	t.Chdir(filepath.Dir(write(t, "bad.yaml", "this, or that")))
	if err := os.WriteFile("two.yaml", []byte("a: b\n---\nc: d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadValues([]string{"bad.yaml", "none.yaml", "two.yaml"}, []string{"a"}, []string{"a[-1]=b"})
	wrong, ok := errors.AsType[Problems](err)
	if !ok {
		t.Fatal(err)
	}
	want := []string{
		`bad.yaml:1:1: the document must be an object, not the text "this, or that"`,
		"none.yaml: no such file or directory",
		"two.yaml:3: a second document: values are one object",
		`the value "a" cannot be set: key "a" has no value | write it as name=value, with dots between names of names`,
		`the value "a[-1]=b" cannot be set: negative -1 index not allowed | write it as name=value, with dots between names of names`,
	}
	if diff := cmp.Diff(want, tell(wrong)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
