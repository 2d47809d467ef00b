package format

import (
	"bytes"
	_ "embed"
	"regexp"
	"strings"
	"text/template"
)

// StarterOptions configures a new scenario.
type StarterOptions struct {
	// Name is the name of the scenario. Characters that are not allowed in names become dashes. Default: my-first-scenario.
	Name string
	// Operator is the operator that runs during the scenario; empty: none.
	Operator string
}

//go:embed starter.yaml.tmpl
var starterText string

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// Starter is a file with a test to begin with, and comments that explain it.
func Starter(o StarterOptions) []byte {
	const most = 50
	o.Name = strings.Trim(notInName.ReplaceAllString(strings.ToLower(o.Name), "-"), "-")
	o.Name = strings.TrimRight(o.Name[:min(len(o.Name), most)], "-")
	if o.Name == "" {
		o.Name = "my-first-scenario"
	}
	o.Operator = strings.Trim(notInName.ReplaceAllString(strings.ToLower(o.Operator), "-"), "-")
	var out bytes.Buffer
	// The template is part of the program and its data are texts: the only error is a mistake in it, which a test finds.
	if err := template.Must(template.New("starter").Parse(starterText)).Execute(&out, o); err != nil {
		panic(err)
	}
	return out.Bytes()
}
