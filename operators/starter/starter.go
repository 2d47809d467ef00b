// Package starter has an operator to begin with: a small project of its own, written for a name.
//
// The directory project is that project for the name gizmo-operator, as ordinary packages of this module, so that it is
// compiled, tested and linted as all else is. Only its go.mod and go.sum are missing there: they are project.mod and
// project.sum, complete and with the versions of this module, so that what was built for the lab is not built again.
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

//go:embed all:project project.mod project.sum
var project embed.FS

// home is the import path of the project in this module.
const home = "github.com/operator-lab/operator-lab/operators/starter/project"

// Options describe a new operator.
type Options struct {
	// Name is the operator's name, see [CheckName]. The kind is named after it, without the end "-operator".
	Name string
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
	files := map[string][]byte{}
	// What is embedded can be read, and is right for every name that CheckName takes: the only error is a mistake in this
	// package, which a test finds.
	if err := fs.WalkDir(project, ".", func(file string, d fs.DirEntry, err error) error {
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
		if ext := path.Ext(file); strings.TrimSuffix(file, ext) == "project" {
			file = "go" + ext
		}
		files[named.Replace(strings.TrimPrefix(file, "project/"))] = text
		return nil
	}); err != nil {
		panic(err)
	}
	return files
}
