package format

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one error or warning about a file.
type Problem struct {
	// File is the path as it was given to the loader.
	File string
	// Line and Column count from 1; 0 if the problem concerns the whole file.
	Line, Column int
	// Message describes the problem in one line.
	Message string
	// Hint suggests a remedy; may be empty.
	Hint string
	// Warning marks a likely mistake that does not keep the test from running and that Chainsaw does not report. Only
	// [Lint] reports warnings.
	Warning bool
	// RepeatedKey marks a key that is written twice in an object.
	RepeatedKey bool
}

// Error returns "file:line:column: message", without the parts that are not known.
func (p Problem) Error() string {
	if where := p.Position().String(); where != "" {
		return where + ": " + p.Message
	}
	return p.Message
}

// Position returns the place of the problem.
func (p Problem) Position() Position {
	return Position{File: p.File, Line: p.Line, Column: p.Column}
}

// String returns "file:line:column", without the parts that are not known.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problems is a list of problems as one error. Every function of this package returns it for a bad file; errors.As also
// finds each problem in it.
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
