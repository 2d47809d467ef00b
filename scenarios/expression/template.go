package expression

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/kyverno/kyverno-json/pkg/core/compilers"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	escaped     = regexp.MustCompile(`^\\(.+)\\$`)
	parentheses = regexp.MustCompile(`^\((?:(\w+);)?(.+)\)$`)
)

// written is a parsed text of a file.
type written struct {
	statement string
	compiler  string // empty if it is not an expression
}

// take parses a text. An expression is enclosed in parentheses, with the name of its compiler and a semicolon in front
// if that is not the default one. A text between backslashes is never an expression.
func take(in string) written {
	if m := escaped.FindStringSubmatch(in); m != nil {
		return written{statement: m[1]}
	}
	m := parentheses.FindStringSubmatch(in)
	if m == nil {
		return written{statement: in}
	}
	if m[1] == "" {
		m[1] = "default"
	}
	return written{m[2], m[1]}
}

// String evaluates a text that may be an expression; the result must be a string.
func (s Scope) String(ctx context.Context, in string) (string, error) {
	w := take(in)
	compiler := s.compilers().Compiler(w.compiler)
	if compiler == nil {
		return w.statement, nil
	}
	out, err := evaluate(ctx, s, func(b bindings) (any, error) {
		return compilers.Execute(w.statement, nil, b, compiler)
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", short(in), err)
	}
	text, ok := out.(string)
	if !ok {
		return "", fmt.Errorf("expression didn't evaluate to a string (%s)", short(in))
	}
	return text, nil
}

// Template returns a copy of a template in which expressions are replaced by their values. An expression sees as @ the
// part of value at its position. A template consists of the types that JSON decodes to.
func (s Scope) Template(ctx context.Context, template, value any) (any, error) {
	if err := measure(template); err != nil {
		return nil, err
	}
	out, err := evaluate(ctx, s, func(b bindings) (any, error) {
		return filler{s.compilers(), b}.fill(nil, template, value)
	})
	if err != nil {
		return nil, err
	}
	return out, measure(out)
}

// filler evaluates a template.
type filler struct {
	compilers compilers.Compilers
	bindings  bindings
}

func (f filler) fill(path *field.Path, template, value any) (any, error) {
	switch t := template.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		in, _ := value.(map[string]any)
		for key, inner := range t {
			filled, err := f.fill(path.Child(key), inner, in[key])
			if err != nil {
				return nil, err
			}
			out[key] = filled
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(t))
		in, _ := value.([]any)
		for i, inner := range t {
			var at any
			if i < len(in) {
				at = in[i]
			}
			filled, err := f.fill(path.Index(i), inner, at)
			if err != nil {
				return nil, err
			}
			out = append(out, filled)
		}
		return out, nil
	case string:
		return f.text(path, t, value)
	}
	return template, nil
}

// text evaluates a text. One that is not an expression is returned unchanged, including backslashes that escape it.
func (f filler) text(path *field.Path, in string, value any) (any, error) {
	w := take(in)
	compiler := f.compilers.Compiler(w.compiler)
	if compiler == nil {
		return in, nil
	}
	out, err := compilers.Execute(w.statement, value, f.bindings, compiler)
	if err != nil {
		return nil, at(path, in, err)
	}
	return out, nil
}

func at(path *field.Path, in string, err error) error {
	if path == nil {
		return fmt.Errorf("%s: %w", short(in), err)
	}
	return fmt.Errorf("%s: %s: %w", path, short(in), err)
}

// short shortens an expression for an error.
func short(in string) string {
	const longest = 300
	if len(in) > longest {
		return strings.ToValidUTF8(in[:longest], "") + "…"
	}
	return in
}

// Object returns an object with the expressions in it evaluated.
func (s Scope) Object(ctx context.Context, object map[string]any) (map[string]any, error) {
	return s.Merge(ctx, object, object)
}

// Merge returns an object merged with a template. Expressions in the template see the object's part at their position.
func (s Scope) Merge(ctx context.Context, object map[string]any, template any) (map[string]any, error) {
	filled, err := s.Template(ctx, template, object)
	if err != nil {
		return nil, err
	}
	over, ok := filled.(map[string]any)
	if !ok {
		return nil, &Invalid{fmt.Errorf("the template must be an object, it is %T", filled)}
	}
	return merge(object, over), nil
}

// merge returns a merged with b, which takes precedence; neither is changed.
func merge(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a))
	maps.Copy(out, a)
	for key, value := range b {
		over, ok := value.(map[string]any)
		below, both := out[key].(map[string]any)
		if ok && both {
			out[key] = merge(below, over)
			continue
		}
		out[key] = value
	}
	return out
}

// Reference returns an asserted object with only the expressions evaluated that identify the object: in its API
// version, kind, name, namespace and labels. All others belong to the assertion.
func (s Scope) Reference(ctx context.Context, object map[string]any) (map[string]any, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if apiVersion == "" || kind == "" {
		return object, nil
	}
	meta, _ := object["metadata"].(map[string]any)
	means := map[string]any{}
	for _, key := range []string{"name", "namespace"} {
		if text, ok := meta[key].(string); ok && text != "" {
			means[key] = text
		}
	}
	labels := map[string]any{}
	if all, ok := meta["labels"].(map[string]any); ok {
		for key, value := range all {
			if text, ok := value.(string); ok {
				labels[key] = text
			}
		}
	}
	if len(labels) > 0 {
		means["labels"] = labels
	}
	reference := map[string]any{"apiVersion": apiVersion, "kind": kind}
	if len(means) > 0 {
		reference["metadata"] = means
	}
	filled, err := s.Object(ctx, reference)
	if err != nil {
		return nil, err
	}
	return merge(object, filled), nil
}
