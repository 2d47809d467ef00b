package images

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// maxFileSize is the maximum size of an images file in bytes.
const maxFileSize = 1 << 20

// The optional version and kind of an images file.
const (
	filesVersion = "operator-lab.dev/v1alpha1"
	filesKind    = "Images"
)

// Problem is one error in an images file.
type Problem struct {
	// File as it was named.
	File string
	// Line and Column count from 1; 0 if the problem concerns the whole file.
	Line, Column int
	// Message describes the problem in one line.
	Message string
	// Hint suggests a remedy; may be empty.
	Hint string
}

// Error returns "file:line:column: message", without the parts that are not known.
func (p Problem) Error() string {
	switch {
	case p.Line == 0:
		return fmt.Sprintf("%s: %s", p.File, p.Message)
	case p.Column == 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Problems is the list of all errors in an images file, as one error.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each of them.
func (p Problems) Unwrap() []error {
	out := make([]error, len(p))
	for i := range p {
		out[i] = p[i]
	}
	return out
}

// readFile returns the content of an images file.
func readFile(file string) (content []byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, Problems{{File: file, Message: plain(err), Hint: "an images file is YAML: 'images: [{name: …, command: […]}]'"}}
	}
	defer f.Close() //nolint:errcheck // it was only read
	// A pipe or a device could be read for ever, and again only with something else in it.
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, Problems{{File: file, Message: "is not a regular file"}}
	}
	content, err = io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, Problems{{File: file, Message: plain(err)}}
	}
	if len(content) > maxFileSize {
		return nil, Problems{{File: file, Message: fmt.Sprintf("is larger than %d MiB", maxFileSize>>20)}}
	}
	return content, nil
}

// plain returns the text of an error of the operating system without the path, which the message names anyway.
func plain(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// absolute is a path that is relative to a file.
func absolute(file, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	full, err := filepath.Abs(filepath.Join(filepath.Dir(file), name))
	if err != nil { // there is no working directory
		return name
	}
	return full
}

// variable is an environment variable.
type variable struct{ name, value string }

// files maps the absolute paths of an image's files to their contents.
type files map[string]string

func (f files) content(name string) (string, bool) {
	text, ok := f[path.Clean("/"+name)]
	return text, ok
}

// mapping is an item of an images file.
type mapping struct {
	name       pattern
	command    []string
	project    string
	operator   string
	args       []string
	env        []variable
	workingDir string
	files      files
	page       *string
	bundle     string
	wait       bool
	pullDelay  time.Duration
	pullError  string
	startDelay time.Duration
}

// parse reads the content of the file of a catalogue.
func (c *Catalogue) parse(content []byte) ([]entry, error) {
	mappings, wrong := decode(c.file, bytes.TrimPrefix(content, []byte("\ufeff")))
	if len(wrong) > 0 {
		return nil, wrong
	}
	entries := make([]entry, 0, len(mappings))
	for _, m := range mappings {
		entries = append(entries, c.entry(m))
	}
	return entries, nil
}

var notInLabel = regexp.MustCompile(`[^a-z0-9]+`)

// OperatorName makes a DNS label of the last element of an operator's path: the name that a lab knows it by. It is "operator" if
// nothing of that can stand in one.
func OperatorName(of string) string {
	name := strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(path.Base(of)), "-"), "-")
	const longest = 40 // names are made of it
	return cmp.Or(strings.TrimRight(name[:min(len(name), longest)], "-"), "operator")
}

// entry returns the entry for a mapping.
func (c *Catalogue) entry(m mapping) entry {
	e := entry{pattern: m.name, pull: Pull{Delay: m.pullDelay, Error: m.pullError}, startDelay: m.startDelay, user: nonRoot, operator: m.operator}
	switch {
	case m.command != nil:
		p := process{guard: c.guard, command: m.command, args: m.args, env: m.env, dir: m.workingDir, files: m.files}
		if p.dir == "" {
			p.dir = absolute(c.file, ".")
		}
		if m.operator != "" {
			p.seen = &Life{Operator: m.operator}
		}
		e.program = p
	case m.project != "":
		if e.operator == "" {
			e.operator = OperatorName(filepath.ToSlash(m.project))
		}
		e.program = built{process{guard: c.guard, args: m.args, env: m.env, dir: m.project}, c.builder, m.project, e.operator}
		e.make = func(ctx context.Context) error { return c.builder.build(ctx, m.project) }
	case m.page != nil:
		e.program = newPage(*m.page, defaultRoot, defaultPort).with(m.env, m.files)
	case m.bundle != "":
		e.program = bundle{m.bundle}
	case m.wait:
		e.program, e.simulated = waiter{files: m.files}, true
	default:
		e.program = unknown{}
	}
	return e
}
