package format

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	// File it is in, as it was named to the loader.
	File string
	// Line and Column, from 1; 0 where it is the file as a whole.
	Line, Column int
	// Message says what is wrong, in one line.
	Message string
	// Hint says what can be done about it; may be empty.
	Hint string
	// Warning: it is likely not meant, but the test runs, and Chainsaw says nothing. Only Lint has warnings.
	Warning bool
}

// Error is "file:line:column: message", without what is not known.
func (p Problem) Error() string {
	if where := p.Position().String(); where != "" {
		return where + ": " + p.Message
	}
	return p.Message
}

// Position is where it is.
func (p Problem) Position() Position {
	return Position{File: p.File, Line: p.Line, Column: p.Column}
}

// String is "file:line:column", without what is not known.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problems are all that is wrong, as one error. It is what every function of this package returns for a bad file; each
// of them is found with errors.As too.
type Problems []Problem

// Error is one line for each.
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

// asError is nil if there are none: an empty slice in an error is not nil.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// sorted puts them in the order of the files, and each only once: a step template that several steps use has its
// problems several times.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}
