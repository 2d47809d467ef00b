package images

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// decoder reads an images file strictly. It continues after a problem, so that all are found at once.
type decoder struct {
	file  string
	wrong Problems
	// visited counts the values read, to limit the expansion of aliases.
	visited int
	stopped bool
}

const (
	// maxVisited is the maximum number of values in a file, with those behind aliases counted each time.
	maxVisited = 200_000
	// maxProblems is the maximum number of problems that are reported at once.
	maxProblems = 20
)

// field reads the value of a key.
type field[T any] struct {
	key  string
	read func(d *decoder, n *yaml.Node, to *T)
}

// document is a whole images file.
type document struct{ images []mapping }

var documentFields = []field[document]{
	{"apiVersion", func(d *decoder, n *yaml.Node, _ *document) { d.constant(n, "apiVersion", filesVersion) }},
	{"kind", func(d *decoder, n *yaml.Node, _ *document) { d.constant(n, "kind", filesKind) }},
	{"images", func(d *decoder, n *yaml.Node, to *document) {
		for _, item := range d.list(n, "images") {
			to.images = append(to.images, d.mapping(item))
		}
	}},
}

var mappingFields = []field[mapping]{
	{"name", func(d *decoder, n *yaml.Node, to *mapping) {
		text, ok := d.text(n, "name")
		if !ok {
			return
		}
		var err error
		if to.name, err = parsePattern(text); err != nil {
			d.problem(n, "such as quay.io/you/app:*, or nginx for all its tags", "name: %v", err)
		}
	}},
	{"command", func(d *decoder, n *yaml.Node, to *mapping) { to.command = d.command(n) }},
	{"project", func(d *decoder, n *yaml.Node, to *mapping) {
		to.project = d.directory(n, "project", "name the directory of an operator, relative to this file")
	}},
	{"bundle", func(d *decoder, n *yaml.Node, to *mapping) {
		const hint = "name a directory with manifests and metadata, as 'operator-lab bundle --out' makes it, relative to this file"
		if to.bundle = d.directory(n, "bundle", hint); to.bundle != "" {
			if _, err := os.Stat(filepath.Join(to.bundle, filepath.FromSlash(annotationsFile))); err != nil {
				d.problem(n, hint, "bundle: %s has no %s", to.bundle, annotationsFile)
			}
		}
	}},
	{"operator", func(d *decoder, n *yaml.Node, to *mapping) {
		text, ok := d.text(n, "operator")
		if to.operator = text; ok && len(validation.IsDNS1123Label(text)) > 0 {
			d.problem(n, "such as my-operator", "operator: %q is not made of small letters, digits and dashes", text)
		}
	}},
	{"args", func(d *decoder, n *yaml.Node, to *mapping) { to.args = d.texts(n, "args") }},
	{"env", func(d *decoder, n *yaml.Node, to *mapping) { to.env = d.variables(n) }},
	{"workingDir", func(d *decoder, n *yaml.Node, to *mapping) {
		if text, ok := d.text(n, "workingDir"); ok {
			to.workingDir = absolute(d.file, text)
		}
	}},
	{"files", func(d *decoder, n *yaml.Node, to *mapping) { to.files = d.files(n) }},
	{"page", func(d *decoder, n *yaml.Node, to *mapping) {
		if text, ok := d.text(n, "page"); ok {
			to.page = &text
		}
	}},
	{"wait", func(d *decoder, n *yaml.Node, to *mapping) {
		if to.wait = n.ShortTag() == "!!bool" && n.Value == "true"; !to.wait {
			d.problem(n, "", "wait must be true")
		}
	}},
	{"pullDelay", func(d *decoder, n *yaml.Node, to *mapping) { to.pullDelay = d.duration(n, "pullDelay") }},
	{"pullError", func(d *decoder, n *yaml.Node, to *mapping) {
		text, ok := d.text(n, "pullError")
		if to.pullError = text; ok && strings.TrimSpace(text) == "" {
			d.problem(n, "such as: unauthorized", "pullError is empty")
		}
	}},
	{"startDelay", func(d *decoder, n *yaml.Node, to *mapping) { to.startDelay = d.duration(n, "startDelay") }},
}

// one lists the keys that exclude each other: exactly one must be set.
var one = []string{"command", "project", "page", "bundle", "wait", "pullError"}

// needs maps a key to the keys of which one must be set with it.
var needs = map[string][]string{
	"args": {"command", "project"}, "operator": {"command", "project"}, "workingDir": {"command"}, "env": {"command", "project", "page"},
	"files": {"command", "page", "wait"}, "startDelay": {"command", "project", "page", "bundle", "wait"},
}

// decode reads an images file.
func decode(file string, content []byte) ([]mapping, Problems) {
	d := &decoder{file: file}
	root := d.parse(content)
	if root == nil {
		return nil, d.wrong
	}
	var doc document
	if has := object(d, root, "the file", documentFields, &doc); len(d.wrong) == 0 && has["images"] == nil {
		d.problem(root, "", "images is missing")
	}
	slices.SortStableFunc(d.wrong, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return doc.images, d.wrong
}

// parse returns the only document of the file.
func (d *decoder) parse(content []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		d.problem(nil, "to map nothing, write 'images: []'", "is empty")
		return nil
	case err != nil:
		d.syntax(err)
		return nil
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		d.problem(&more, "put all under one 'images'", "a second document begins here")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	return resolve(doc.Content[0])
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntax makes a problem of an error of the YAML parser.
func (d *decoder) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{File: d.file, Line: 1} // the parser does not name the first line
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	text, _, _ = strings.Cut(text, "\n")
	p.Message = "not YAML: " + text
	d.wrong = append(d.wrong, p)
}

func (d *decoder) problem(n *yaml.Node, hint, format string, args ...any) {
	if d.stopped {
		return
	}
	p := Problem{File: d.file, Message: fmt.Sprintf(format, args...), Hint: hint}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.wrong = append(d.wrong, p)
	d.stopped = len(d.wrong) == maxProblems
}

// visit counts a value, and reports whether reading goes on.
func (d *decoder) visit(n *yaml.Node) bool {
	if d.visited++; d.visited > maxVisited && !d.stopped {
		d.wrong = nil // only this problem is reported
		d.problem(n, "", "has more than %d values, as many as its aliases make of it", maxVisited)
		d.stopped = true
	}
	return !d.stopped
}

// resolve follows an alias. One that stands for a part of itself needs no care: nothing here is read deeper than it is
// described.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// object reads an object and returns its keys.
func object[T any](d *decoder, n *yaml.Node, what string, fields []field[T], to *T) map[string]*yaml.Node {
	has := map[string]*yaml.Node{}
	known := make([]string, len(fields))
	for i := range fields {
		known[i] = fields[i].key
	}
	d.pairs(n, what, func(key, value *yaml.Node) {
		has[key.Value] = key
		if i := slices.Index(known, key.Value); i >= 0 {
			fields[i].read(d, value, to)
		} else {
			d.problem(key, suggest(key.Value, known), "unknown key %q", shorten(key.Value))
		}
	})
	return has
}

// pairs gives the keys of an object and their values, in their order.
func (d *decoder) pairs(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, "", "%s must be an object, not %s", what, describe(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		if !d.visit(key) {
			return
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			d.problem(key, "", "a key must be a text, not %s", describe(key))
		case seen[key.Value]:
			d.problem(key, "", "%q is there twice", shorten(key.Value))
		default:
			seen[key.Value] = true
			each(key, resolve(n.Content[i+1]))
		}
	}
}

// mapping reads an item of the images.
func (d *decoder) mapping(n *yaml.Node) (m mapping) {
	before := len(d.wrong)
	has := object(d, n, "an image", mappingFields, &m)
	if len(d.wrong) > before {
		return m // a key that seems to be missing may be misspelt
	}
	if has["name"] == nil {
		d.problem(n, "", "name is missing")
	}
	var what []string
	for _, key := range one {
		if has[key] != nil {
			what = append(what, key)
		}
	}
	if len(what) == 0 {
		d.problem(n, "say one of "+strings.Join(one, ", "), "nothing says what the image is")
		return m
	}
	for _, key := range what[1:] {
		d.problem(has[key], "", "an image is one thing: %s and %s exclude each other", what[0], key)
	}
	for key, at := range has {
		if of := needs[key]; of != nil && !slices.Contains(of, what[0]) {
			d.problem(at, "", "%s says nothing beside %s, only beside %s", key, what[0], strings.Join(of, ", "))
		}
	}
	return m
}

// constant reads a key with only one valid value.
func (d *decoder) constant(n *yaml.Node, key, want string) {
	if got, ok := d.text(n, key); ok && got != want {
		d.problem(n, "leave it out, or write "+want, "%s is %q", key, shorten(got))
	}
}

// text reads a text. Numbers and such are taken as they are written.
func (d *decoder) text(n *yaml.Node, what string) (text string, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		d.problem(n, "", "%s must be a text, not %s", what, describe(n))
		return "", false
	case strings.ContainsRune(n.Value, 0):
		d.problem(n, "", "%s has a character that no argument, variable or path can have", what)
		return "", false
	}
	return n.Value, true
}

// list reads a list.
func (d *decoder) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, "", "%s must be a list, not %s", what, describe(n))
		return nil
	}
	items := make([]*yaml.Node, 0, len(n.Content))
	for _, item := range n.Content {
		if !d.visit(item) {
			break
		}
		items = append(items, resolve(item))
	}
	return items
}

// directory reads the path of a directory that is there; empty: it is not.
func (d *decoder) directory(n *yaml.Node, key, hint string) string {
	text, ok := d.text(n, key)
	dir := absolute(d.file, text)
	if info, err := os.Stat(dir); !ok || text == "" || err != nil || !info.IsDir() {
		if ok {
			d.problem(n, hint, "%s: %s is no directory", key, dir)
		}
		return ""
	}
	return dir
}

// texts reads a list of texts.
func (d *decoder) texts(n *yaml.Node, what string) []string {
	out := []string{}
	for _, item := range d.list(n, what) {
		text, _ := d.text(item, "an item of "+what)
		out = append(out, text)
	}
	return out
}

// command reads a command, the first word of which is a program on the PATH or a file.
func (d *decoder) command(n *yaml.Node) []string {
	before := len(d.wrong)
	argv := d.texts(n, "command")
	if len(d.wrong) == before && (len(argv) == 0 || argv[0] == "") {
		d.problem(n, "such as [./server, --port, $(LAB_PORT_8080)]", "command names no program")
		return argv
	}
	if len(argv) > 0 && strings.ContainsRune(argv[0], filepath.Separator) {
		argv[0] = absolute(d.file, argv[0])
	}
	return argv
}

var variableName = regexp.MustCompile(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`)

// variables reads an environment.
func (d *decoder) variables(n *yaml.Node) (env []variable) {
	d.pairs(n, "env", func(key, value *yaml.Node) {
		if !variableName.MatchString(key.Value) {
			d.problem(key, "", "%q is no name of a variable", shorten(key.Value))
		}
		text, _ := d.text(value, shorten(key.Value))
		env = append(env, variable{key.Value, text})
	})
	return env
}

// longestPath is the limit of operating systems.
const longestPath = 4096

// files reads files by their paths in the image.
func (d *decoder) files(n *yaml.Node) files {
	out, folders := files{}, map[string]bool{}
	d.pairs(n, "files", func(key, value *yaml.Node) {
		name := path.Clean(key.Value)
		if !path.IsAbs(name) || name == "/" || len(name) > longestPath || strings.ContainsRune(name, 0) {
			d.problem(key, "such as /etc/app/config.yaml", "%q is no absolute path of a file", shorten(key.Value))
			return
		}
		_, clash := out[name]
		clash = clash || folders[name]
		for folder := path.Dir(name); folder != "/"; folder = path.Dir(folder) {
			_, file := out[folder]
			clash, folders[folder] = clash || file, true
		}
		if clash {
			d.problem(key, "", "%q is there twice, or one is the folder of the other", shorten(key.Value))
		}
		out[name], _ = d.text(value, shorten(key.Value))
	})
	return out
}

// duration reads a duration.
func (d *decoder) duration(n *yaml.Node, what string) time.Duration {
	text, ok := d.text(n, what)
	t, err := time.ParseDuration(text)
	if ok && (err != nil || t < 0) {
		d.problem(n, "write it with its unit, such as 5s or 1m30s", "%s must be a duration, not %q", what, shorten(text))
		return 0
	}
	return t
}

// describe returns the value or the kind of a node, for messages.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing"
	}
	return strconv.Quote(shorten(n.Value))
}

// shorten keeps a message to one line.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
