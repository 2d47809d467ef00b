package book

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// StarterOptions describe a new lesson.
type StarterOptions struct {
	// Number is the lesson's number.
	Number int
	// ID is the lesson's ID; see [CheckID].
	ID string
	// Operator is the operator that runs during the lesson; empty for none.
	Operator string
}

// CheckID returns an error if the ID of a lesson is not valid.
func CheckID(id string) error {
	if _, _, ok := split("00-" + id); !ok || len(id) > mostTitle {
		return fmt.Errorf("%q is no id of a lesson: it is up to %d lower-case letters, digits and dashes, a letter first", id, mostTitle)
	}
	if slices.Contains(Reserved, id) {
		return fmt.Errorf("%q is no id of a lesson: 'operator-lab lesson %s' means something else", id, id)
	}
	return nil
}

//go:embed starter/*.tmpl
var starter embed.FS

// Starter returns the name of the folder of a new lesson and its files by their names in it. They have explanatory
// comments.
func Starter(o StarterOptions) (folder string, files map[string][]byte) {
	data := struct{ Title, Task, Manifest, Operator string }{
		strings.ToUpper(o.ID[:1]) + strings.ReplaceAll(o.ID[1:], "-", " "), "greet", "greeting.yaml", o.Operator,
	}
	if o.Operator == "zundoko" {
		data.Task, data.Manifest = "sing", "hikawa.yaml"
	}
	// The templates are embedded and their data are strings: the only possible error is a mistake in them, which a test
	// finds.
	all := template.Must(template.ParseFS(starter, "starter/*.tmpl"))
	files = map[string][]byte{}
	for name, from := range map[string]string{
		metadataFile: "lesson.yaml", "en.md": "en.md", "ja.md": "ja.md", data.Task + ".yaml": "task.yaml", data.Manifest: "manifest.yaml",
	} {
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, from+".tmpl", data); err != nil {
			panic(err)
		}
		files[name] = out.Bytes()
	}
	return fmt.Sprintf("%02d-%s", o.Number, o.ID), files
}

// NextNumber returns the number after those of all lessons in a folder of the operating system; 1 if there are none.
func NextNumber(folder string) int {
	last := 0
	places, _ := foldersOf(folder) // a missing folder has none
	for _, at := range places {
		if number, _, ok := split(at.name); ok {
			last = max(last, number)
		}
	}
	return last + 1
}
