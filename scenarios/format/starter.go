package format

import (
	"bytes"
	_ "embed"
	"regexp"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// StarterOptions configures a new scenario.
type StarterOptions struct {
	// Name is the name of the scenario. Characters that are not allowed in names become dashes. Default: my-first-scenario.
	Name string
	// Operator is the operator that runs during the scenario; empty: none.
	Operator string
	// Sample is a manifest of one object that the operator acts on. Default: a ConfigMap that nobody acts on.
	Sample []byte
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
	data := starterData{StarterOptions: o, Object: sample(o.Sample)}
	if data.Object != nil {
		data.Manifest = "          " + strings.ReplaceAll(strings.TrimSpace(string(o.Sample)), "\n", "\n          ")
	}
	var out bytes.Buffer
	// The template is part of the program and its data are texts: the only error is a mistake in it, which a test finds.
	if err := template.Must(template.New("starter").Parse(starterText)).Execute(&out, data); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// starterData is what the template is filled with. Manifest is that of Object, indented.
type starterData struct {
	StarterOptions
	Object   *sampleObject
	Manifest string
}

// sampleObject is what the template says of a sample.
type sampleObject struct {
	APIVersion string
	Kind       string
	Metadata   struct{ Name string }
}

// sample reads a manifest; nil if it is not that of one object.
func sample(manifest []byte) *sampleObject {
	var o sampleObject
	if yaml.Unmarshal(manifest, &o) != nil || o.Kind == "" || o.Metadata.Name == "" {
		return nil
	}
	return &o
}

// Resource is the kind as kubectl takes it, with its group: another operator may have one of the same name.
func (o sampleObject) Resource() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return strings.ToLower(o.Kind)
	}
	return strings.ToLower(o.Kind) + "." + group
}
