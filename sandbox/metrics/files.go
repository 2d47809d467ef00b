package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// language is Prometheus' own, without what it calls experimental.
var language = parser.NewParser(parser.Options{})

// ruleKind is the kind of the Prometheus operator's object with rules.
const ruleKind = "PrometheusRule"

// ParseRules reads a file with groups of rules as Prometheus does: a rule file of its own, or a PrometheusRule, whose spec
// is one. An error is one line, which names the file, and the rule where there is one.
func ParseRules(file string, content []byte) (*Rules, error) {
	content, err := groupsIn(content)
	if err != nil {
		return nil, oneLine(file, err)
	}
	parsed, errs := rulefmt.Parse(content, false, model.UTF8Validation, language)
	if len(errs) > 0 {
		err := oneLine(file, errs[0])
		if len(errs) > 1 {
			err = fmt.Errorf("%w (and %d more)", err, len(errs)-1)
		}
		return nil, err
	}
	r := &Rules{}
	for _, g := range parsed.Groups {
		one, err := newGroup(file, g)
		if err != nil {
			return nil, oneLine(file, err)
		}
		r.groups = append(r.groups, one)
	}
	if !slices.ContainsFunc(r.groups, func(g *group) bool { return len(g.rules) > 0 }) {
		return nil, fmt.Errorf("%s: there are no rules in it", file)
	}
	return r, nil
}

// oneLine returns an error about a file as one line.
func oneLine(file string, err error) error {
	return fmt.Errorf("%s: %s", file, strings.Join(strings.Fields(err.Error()), " "))
}

// groupsIn returns the groups of a rule file. Those of a PrometheusRule stay on their lines and in their columns, so that
// errors name the right ones.
func groupsIn(content []byte) ([]byte, error) {
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	var document, another yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return content, nil //nolint:nilerr // the same is said when the groups are read
	}
	if decoder.Decode(&another) == nil {
		return nil, errors.New("it has several documents; a rule file is one")
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode || valueOf(root, "kind") == nil || valueOf(root, "kind").Value != ruleKind {
		return content, nil
	}
	spec := valueOf(root, "spec")
	if spec == nil || spec.Kind != yaml.MappingNode || spec.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("this %s has no spec in YAML's block style", ruleKind)
	}
	lines := strings.Split(string(content), "\n")
	end := len(lines)
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Line > spec.Line {
			end = min(end, key.Line-1)
		}
	}
	return []byte(strings.Repeat("\n", spec.Line-1) + strings.Join(lines[spec.Line-1:end], "\n")), nil
}

// valueOf returns the value of a key in a mapping; nil if it is not there.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// newGroup returns a group that has not been evaluated yet.
func newGroup(file string, g rulefmt.RuleGroup) (*group, error) {
	one := &group{file: file, name: g.Name, interval: time.Duration(g.Interval), limit: g.Limit}
	if g.QueryOffset != nil {
		one.offset = time.Duration(*g.QueryOffset)
	}
	for i, r := range g.Rules {
		expr, err := language.ParseExpr(r.Expr)
		if err != nil { // Parse has parsed it
			return nil, fmt.Errorf("group %q, rule %d: %w", g.Name, i+1, err)
		}
		if t := expr.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
			return nil, fmt.Errorf("group %q, rule %d, %q: the expression is a %s, which is no instant vector",
				g.Name, i+1, r.Alert+r.Record, parser.DocumentedType(t))
		}
		one.rules = append(one.rules, newRule(r, g.Labels))
	}
	return one, nil
}
