package runner

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// problem is an error with the details of a [report.Failure].
type problem struct {
	failure report.Failure
	err     error // may be nil
}

// Error returns the failure's message.
func (p *problem) Error() string { return p.failure.Message }

// Unwrap returns the cause, if any.
func (p *problem) Unwrap() error { return p.err }

// problemf returns a problem with a hint.
func problemf(hint, message string, arguments ...any) *problem {
	err := fmt.Errorf(message, arguments...)
	return &problem{report.Failure{Message: err.Error(), Hint: hint}, err}
}

// failureOf converts an error to a failure for the report.
func failureOf(err error) *report.Failure {
	var f report.Failure
	var p *problem
	var unexpected *expression.Unexpected
	switch {
	case errors.As(err, &p):
		f = p.failure
	case errors.As(err, &unexpected):
		f = report.Failure{Message: "what came of it is not as expected", Differences: differences(unexpected.Fields)}
	}
	if p == nil || p != err { //nolint:errorlint // whether it is wrapped is the question
		if unexpected == nil {
			f.Message = err.Error()
		}
	}
	var hinted interface{ Hint() string }
	if f.Hint == "" && errors.As(err, &hinted) {
		f.Hint = hinted.Hint()
	}
	f.Message = cut(oneLine(f.Message), longestMessage)
	return &f
}

// longestMessage bounds the length of a message in characters: some messages of the API server contain a whole object.
const longestMessage = 700

// cut shortens a text that is too long.
func cut(text string, longest int) string {
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// differences converts the errors of an assertion tree to differences for the report.
func differences(list field.ErrorList) []report.Difference {
	out := make([]report.Difference, 0, len(list))
	for _, e := range list {
		out = append(out, difference(e))
	}
	return out
}

func difference(e *field.Error) report.Difference {
	d := report.Difference{Path: e.Field}
	wanted, compared := strings.CutPrefix(e.Detail, "Expected value: ") // as kyverno-json puts it
	switch {
	case e.Type == field.ErrorTypeRequired:
		d.Message = "is not there"
	case compared:
		d.Is, d.Want = show(e.BadValue), wanted
		d.Message = fmt.Sprintf("is %s, not %s", d.Is, d.Want)
	case e.Type == field.ErrorTypeInvalid:
		d.Message = fmt.Sprintf("is %s: %s", show(e.BadValue), e.Detail)
	default:
		d.Message = e.ErrorBody()
	}
	return d
}

// longestShown is the maximum number of characters of a value in a line; the diff has the whole value.
const longestShown = 120

func show(value any) string {
	text, quoted := value.(string)
	if quoted {
		text = fmt.Sprintf("%q", text)
	} else {
		text = oneLine(asYAML(value))
	}
	return cut(text, longestShown)
}
