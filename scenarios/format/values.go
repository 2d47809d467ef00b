package format

import (
	"fmt"
	"maps"
	"os"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/strvals"
)

// LoadValues returns the values that tests see as $values. It reads the files, each of which overrides the earlier
// ones; "-" is standard input. Then it applies set, with numbers and booleans, and setString, with strings, in the form
// name.of.it=value as in Helm. The error is [Problems].
func LoadValues(files []string, set, setString []string) (map[string]any, error) {
	out := map[string]any{}
	var wrong Problems
	for _, file := range files {
		values, p := loadValues(file)
		wrong = append(wrong, p...)
		out = mergeValues(out, values)
	}
	const hint = "write it as name=value, with dots between names of names"
	for _, s := range set {
		if err := strvals.ParseInto(s, out); err != nil {
			wrong = append(wrong, Problem{Message: fmt.Sprintf("the value %q cannot be set: %v", shorten(s), err), Hint: hint})
		}
	}
	for _, s := range setString {
		if err := strvals.ParseIntoString(s, out); err != nil {
			wrong = append(wrong, Problem{Message: fmt.Sprintf("the value %q cannot be set: %v", shorten(s), err), Hint: hint})
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}

// loadValues reads one file.
func loadValues(file string) (map[string]any, Problems) {
	read := func() ([]byte, error) { return (source{}).read(file) }
	if file == "-" {
		file = "standard input"
		read = func() ([]byte, error) { return readAll(os.Stdin, file) }
	}
	data, err := read()
	if err != nil {
		return nil, problems(file, err)
	}
	docs, wrong := parse(file, data)
	switch {
	case len(wrong) > 0:
		return nil, wrong
	case len(docs) == 0:
		return nil, nil
	case len(docs) > 1:
		return nil, Problems{{File: file, Line: docs[1].line, Message: "a second document: values are one object"}}
	}
	d := newDecoder(file, docs[0], false)
	d.lastWins = true
	if target(docs[0].root).Kind != yaml.MappingNode {
		d.wrong(docs[0].root, nil, "an object")
		return nil, d.problems
	}
	out, _ := floats(d.any(docs[0].root, nil)).(map[string]any)
	return out, d.problems
}

// mergeValues is b over a, object by object.
func mergeValues(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for k, v := range b {
		below, ok := out[k].(map[string]any)
		if over, both := v.(map[string]any); ok && both {
			v = mergeValues(below, over)
		}
		out[k] = v
	}
	return out
}
