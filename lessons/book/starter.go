package book

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// StarterOptions is what a new lesson begins with.
type StarterOptions struct {
	// Number of the lesson.
	Number int
	// ID of it: see [CheckID].
	ID string
	// Operator that runs during it; empty: none.
	Operator string
}

// CheckID says what is wrong with the id of a lesson; nil if nothing is.
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

// StarterFile is a file of a new lesson.
type StarterFile struct {
	// Name of it, in the lesson's folder.
	Name string
	// Text of it.
	Text []byte
}

// Starter is the folder of a lesson to begin with, and its files, with comments that explain them.
func Starter(o StarterOptions) (folder string, files []StarterFile) {
	data := struct{ Title, Task, Manifest, Operator string }{
		strings.ToUpper(o.ID[:1]) + strings.ReplaceAll(o.ID[1:], "-", " "), "greet", "greeting.yaml", o.Operator,
	}
	if o.Operator == "zundoko" {
		data.Task, data.Manifest = "sing", "hikawa.yaml"
	}
	// The templates are part of the program and their data are texts: the only error is a mistake in them, which a test
	// finds.
	all := template.Must(template.ParseFS(starter, "starter/*.tmpl"))
	for _, f := range []struct{ name, from string }{
		{metadataFile, "lesson.yaml"}, {"en.md", "en.md"}, {"ja.md", "ja.md"}, {data.Task + ".yaml", "task.yaml"}, {data.Manifest, "manifest.yaml"},
	} {
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, f.from+".tmpl", data); err != nil {
			panic(err)
		}
		files = append(files, StarterFile{f.name, out.Bytes()})
	}
	return fmt.Sprintf("%02d-%s", o.Number, o.ID), files
}

// NextNumber is the number after all of the lessons of a folder of the operating system; 1 where there are none.
func NextNumber(folder string) int {
	last := 0
	places, _ := foldersOf(folder) // one that is not there has none
	for _, at := range places {
		if number, _, ok := split(at.name); ok {
			last = max(last, number)
		}
	}
	return last + 1
}
