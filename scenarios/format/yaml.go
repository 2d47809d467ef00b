package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxDocuments is the maximum number of documents in a file.
const maxDocuments = 10_000

// document is one document of a YAML file.
type document struct {
	// root is its value; nil if it could not be read.
	root *yaml.Node
	// before is the number of lines of the file before the first line of this document's nodes.
	before int
	// line of the file at which it begins.
	line int
}

// parse reads the documents of a file. A document that cannot be read has a problem and does not affect the others;
// documents with nothing but comments are left out.
func parse(file string, data []byte) ([]document, Problems) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if p := checkText(file, data); p != nil {
		return nil, Problems{*p}
	}
	var (
		out      []document
		problems Problems
	)
	parts := split(data)
	if len(parts) > maxDocuments {
		return nil, Problems{{File: file, Message: fmt.Sprintf("has more than %d documents", maxDocuments), Hint: "split it into several files"}}
	}
	for _, part := range parts {
		root, p := parseOne(file, part)
		if p != nil {
			problems = append(problems, *p)
			out = append(out, document{before: part.before, line: part.before + 1})
			continue
		}
		if root == nil {
			continue
		}
		out = append(out, document{root: root, before: part.before, line: part.before + root.Line})
	}
	return out, problems
}

// checkText finds what YAML does not allow anywhere.
func checkText(file string, data []byte) *Problem {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return &Problem{File: file, Line: 1, Column: 1, Message: "is UTF-16", Hint: "save it as UTF-8"}
	}
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return &Problem{File: file, Line: line, Column: column, Message: "is not UTF-8", Hint: "save it as UTF-8"}
		}
		if !printable(r) {
			return &Problem{
				File: file, Line: line, Column: column,
				Message: fmt.Sprintf("has the character %U, which YAML does not allow", r),
				Hint:    fmt.Sprintf("write it as \"\\u%04X\" in double quotes if it is meant", r),
			}
		}
		i += size
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return nil
}

// printable reports whether YAML allows a character.
func printable(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == 0x85:
		return true
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff:
		return false
	}
	return true
}

// part is the text of one document.
type part struct {
	text   []byte
	before int
}

// split cuts a file at the lines that separate documents: "---" and at most a comment.
func split(data []byte) []part {
	var (
		out   []part
		start int
		at    part
	)
	line := 0
	for i := 0; i < len(data); {
		end := len(data)
		if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		line++
		if separates(data[i:end]) {
			at.text = data[start:i]
			out = append(out, at)
			start, at = end, part{before: line}
		}
		i = end
	}
	at.text = data[start:]
	return append(out, at)
}

func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok {
		return false
	}
	trimmed := bytes.TrimSpace(rest)
	return len(trimmed) == 0 || trimmed[0] == '#'
}

// parseOne reads the text of one document; the node is nil if it is empty.
func parseOne(file string, p part) (*yaml.Node, *Problem) {
	dec := yaml.NewDecoder(bytes.NewReader(p.text))
	var n yaml.Node
	err := dec.Decode(&n)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, syntax(file, p, err)
	}
	if n.Kind != yaml.DocumentNode || len(n.Content) == 0 {
		return nil, nil
	}
	root := n.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" && root.Value == "" {
		return nil, nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return root, nil
	case err != nil:
		return nil, syntax(file, p, err)
	}
	return nil, &Problem{
		File: file, Line: p.before + second.Line, Column: second.Column,
		Message: "a second document begins here without a line that separates them",
		Hint:    "put --- on a line of its own",
	}
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntax makes a problem of an error of the YAML parser.
func syntax(file string, p part, err error) *Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	out := &Problem{File: file, Line: p.before + 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		// What is missing at the end is missed after the last line.
		out.Line = p.before + min(n, 1+bytes.Count(p.text, []byte("\n")))
		text = strings.TrimPrefix(text, m[0])
	}
	if line := tabbed(p.text, out.Line-p.before); line > 0 {
		out.Line, out.Column = p.before+line, 1
		out.Message, out.Hint = "a tab where YAML wants spaces", "indent with spaces"
		return out
	}
	out.Message = "not YAML: " + text
	switch {
	case strings.Contains(text, "mapping values are not allowed"):
		out.Hint = "a text with a colon and a space in it needs quotes, and keys of one object the same indentation"
	case strings.Contains(text, "find expected"):
		out.Hint = "check the indentation, and that quotes and brackets are closed"
	case strings.Contains(text, "cannot start any token"):
		out.Hint = "a text that begins with @, ` or % needs quotes"
	}
	return out
}

// tabbed returns the number of the line at or next to near that is indented with a tab; 0 if there is none. The parser
// counts from 0 in some places and from 1 in others.
func tabbed(text []byte, near int) int {
	lines := bytes.SplitN(text, []byte("\n"), near+2)
	for _, n := range []int{near, near + 1, near - 1} {
		if n < 1 || n > len(lines) {
			continue
		}
		line := lines[n-1]
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if bytes.IndexByte(indent, '\t') >= 0 {
			return n
		}
	}
	return 0
}
