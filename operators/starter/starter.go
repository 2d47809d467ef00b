// Package starter has an operator to begin with: a small project of its own, written for a name.
//
// The directory project is that project for the name gizmo-operator, as ordinary packages of this module, so that it is
// compiled, tested and linted as all else is. Only its go.mod is missing there.
package starter

import (
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed all:project
var project embed.FS

// home is the import path of the project in this module.
const home = "github.com/operator-lab/operator-lab/operators/starter/project"

// Modules are the modules that the project imports.
var Modules = []string{
	"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "sigs.k8s.io/controller-runtime",
}

// Options describe a new operator.
type Options struct {
	// Name is the operator's name, see [CheckName]. The kind is named after it, without the end "-operator".
	Name string
	// Go is the language version of its go.mod, such as "1.26.0". Default: 'go mod tidy' chooses one.
	Go string
	// Versions are those of [Modules] by their paths. One that is missing is not required by the go.mod: 'go mod tidy'
	// takes the newest.
	Versions map[string]string
}

// A namespace, a Go module and, in capitals, a Go type are named after the operator.
var name = regexp.MustCompile(`\A[a-z]([-a-z0-9]{0,38}[a-z0-9])?\z`)

// CheckName returns an error if an operator cannot have a name.
func CheckName(s string) error {
	if !name.MatchString(s) {
		return fmt.Errorf("%q is no name for an operator: it is up to 40 lower-case letters, digits and dashes, a letter first", s)
	}
	if s == "vendor" {
		return fmt.Errorf("%q is no name for an operator: Go gives directories of this name another meaning", s)
	}
	return nil
}

// Kind returns the kind that is named after an operator.
func Kind(operator string) string {
	words := strings.Fields(strings.ReplaceAll(strings.TrimSuffix(operator, "-operator"), "-", " "))
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// Files returns the files of the project of a new operator by their slash-separated paths.
func Files(o Options) map[string][]byte {
	kind := Kind(o.Name)
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	named := strings.NewReplacer(home, "example.com/"+o.Name,
		"gizmo-operator", o.Name, "gizmos", plural.Resource, "gizmo", singular.Resource, "Gizmo", kind)
	files := map[string][]byte{"go.mod": o.goMod()}
	// What is embedded can be read, and is right for every name that CheckName takes: the only error is a mistake in this
	// package, which a test finds.
	if err := fs.WalkDir(project, "project", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := project.ReadFile(file)
		if err != nil {
			return err
		}
		text = []byte(named.Replace(string(text)))
		if path.Ext(file) == ".go" {
			if text, err = format.Source(text); err != nil { // other names are of other widths
				return err
			}
		}
		files[named.Replace(strings.TrimPrefix(file, "project/"))] = text
		return nil
	}); err != nil {
		panic(err)
	}
	return files
}

func (o Options) goMod() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "module example.com/%s\n\n", o.Name)
	if o.Go != "" {
		fmt.Fprintf(&out, "go %s\n\n", o.Go)
	}
	out.WriteString("require (\n")
	for _, module := range Modules {
		if version := o.Versions[module]; version != "" {
			fmt.Fprintf(&out, "\t%s %s\n", module, version)
		}
	}
	return []byte(out.String() + ")\n")
}
