package format

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/labels"
)

// filter selects tests.
type filter struct {
	selector         labels.Selector
	include, exclude pattern
}

// newFilter checks what the user asked for. The error is Problems.
func newFilter(d Discovery) (*filter, error) {
	var wrong Problems
	bad := func(hint, message string, args ...any) {
		wrong = append(wrong, Problem{Message: fmt.Sprintf(message, args...), Hint: hint})
	}
	f := &filter{}
	selector, err := labels.Parse(strings.Join(d.Selectors, ","))
	if err != nil {
		bad("such as team=blue or 'team in (blue,red),!slow'", "not a selector of labels: %v", err)
	}
	f.selector = selector
	if f.include, err = newPattern(d.Include); err != nil {
		bad("", "tests to include: %v", err)
	}
	if f.exclude, err = newPattern(d.Exclude); err != nil {
		bad("", "tests to exclude: %v", err)
	}
	if d.ShardCount < 0 || d.ShardCount > 0 && (d.ShardIndex < 0 || d.ShardIndex >= d.ShardCount) {
		bad("the index is from 0 to one less than the count", "there is no shard %d of %d", d.ShardIndex, d.ShardCount)
	}
	return f, wrong.asError()
}

// named reports whether the name of a test is selected.
func (f *filter) named(name string) bool {
	return (f.include == nil || f.include.matches(name)) && (f.exclude == nil || !f.exclude.matches(name))
}

// pattern is a list of alternatives, each a list of expressions for the parts of a name between slashes. nil means that
// no pattern was given.
type pattern [][]*regexp.Regexp

// root is the first part of every test's name in Chainsaw, which runs all tests as subtests of one.
const root = "chainsaw"

// newPattern reads a pattern of go test: alternatives with | and parts with / outside of brackets.
func newPattern(s string) (pattern, error) {
	if s == "" {
		return nil, nil
	}
	var out pattern
	for _, alternative := range cut(s, '|') {
		var parts []*regexp.Regexp
		for _, part := range cut(alternative, '/') {
			re, err := regexp.Compile(part)
			if err != nil {
				return nil, fmt.Errorf("%q is not a regular expression: %w", part, err)
			}
			parts = append(parts, re)
		}
		out = append(out, parts)
	}
	return out, nil
}

// cut cuts at a letter outside of brackets and parentheses.
func cut(s string, at byte) []string {
	var (
		out           []string
		square, round int
		start         int
	)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			square++
		case c == ']':
			square = max(square-1, 0)
		case c == '(' && square == 0:
			round++
		case c == ')' && square == 0:
			round--
		case c == at && square == 0 && round == 0:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// matches reports whether one of the alternatives matches the name, with or without its first part.
func (p pattern) matches(name string) bool {
	parts := strings.Split(root+"/"+rewrite(name), "/")
	for _, alternative := range p {
		if matchParts(alternative, parts) || !alternative[0].MatchString(root) && matchParts(alternative, parts[1:]) {
			return true
		}
	}
	return false
}

// matchParts reports whether all expressions match the first parts of a name.
func matchParts(expressions []*regexp.Regexp, parts []string) bool {
	if len(expressions) > len(parts) {
		return false
	}
	for i, re := range expressions {
		if !re.MatchString(parts[i]) {
			return false
		}
	}
	return true
}

// rewrite returns a name in the form that go test uses, with underscores for spaces.
func rewrite(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, name)
}
