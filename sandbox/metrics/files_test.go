package metrics

import (
	"strings"
	"testing"
)

// TestBadRules checks that an error is one line that names the file, and the rule where there is one.
func TestBadRules(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"empty":          {"", "r.yaml: there are no rules in it"},
		"no groups":      {"groups: []\n", "r.yaml: there are no rules in it"},
		"no YAML":        {"groups: [", "r.yaml: yaml: line 1: did not find expected node content"},
		"no rule file":   {"kind: Pod\n", "r.yaml: yaml: unmarshal errors: line 1: field kind not found in type rulefmt.RuleGroups"},
		"two documents":  {"groups: []\n---\ngroups: []\n", "r.yaml: it has several documents; a rule file is one"},
		"bad expression": {"groups:\n- name: g\n  rules:\n  - alert: A\n    expr: sum(\n", `r.yaml: 5:11: group "g", rule 1, "A": could not parse expression: 1:5: parse error: unclosed left parenthesis`},
		"no name":        {"groups: [{name: g, rules: [{expr: x}]}]", `one of 'record' or 'alert' must be set`},
		"a range":        {"groups: [{name: g, rules: [{alert: A, expr: 'x[1m]'}]}]", `r.yaml: group "g", rule 1, "A": the expression is a range vector, which is no instant vector`},
		"bad template":   {"groups: [{name: g, rules: [{alert: A, expr: x, annotations: {a: '{{ .'}}]}]", `group "g", rule 1, "A": annotation "a":`},
		"several":        {"groups: [{name: g, rules: [{alert: A, expr: (}, {alert: B, expr: )}]}]", "(and 1 more)"},
		"a PrometheusRule": {
			"kind: PrometheusRule\nmetadata:\n  name: x\nspec:\n  groups:\n  - name: g\n    rules:\n    - alert: A\n      expr: sum(\n",
			`r.yaml: 9:13: group "g", rule 1, "A": could not parse`,
		},
		"a PrometheusRule without a spec": {"kind: PrometheusRule\n", "r.yaml: this PrometheusRule has no spec in YAML's block style"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRules("r.yaml", []byte(test.content))
			if err == nil {
				t.Fatal("it is taken")
			}
			if got := err.Error(); !strings.HasPrefix(got, "r.yaml: ") || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestPrometheusRule checks that what stands after the spec does not belong to it.
func TestPrometheusRule(t *testing.T) {
	r, err := ParseRules("r.yaml", []byte("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nspec:\n  groups:\n  - name: g\n    rules:\n    - {alert: A, expr: x}\nmetadata:\n  name: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Alerts(), " "); got != "A" {
		t.Errorf("its rules are %q", got)
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("kind: PrometheusRule\nspec:\n  groups: []\n"))
	f.Add([]byte("kind: PrometheusRule\nspec: {groups: []}\nmetadata: {}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := ParseRules("file", content)
		if err == nil {
			r.Alerts()
			r.wanted()
			r.reach()
			return
		}
		if text := err.Error(); !strings.HasPrefix(text, "file: ") || strings.Contains(text, "\n") {
			t.Errorf("the error is %q", text)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# TYPE a counter\na{b=\"c\",pod=\"x\"} 1\n"))
	f.Add([]byte("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		samples, err := parse(raw, map[string]string{"pod": "a"}, anything)
		if err != nil {
			return
		}
		for _, s := range samples {
			if s.Labels.Get("pod") != "a" {
				t.Errorf("%s is not of its target", s.Labels)
			}
		}
	})
}
