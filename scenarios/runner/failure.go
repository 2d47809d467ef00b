package runner

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// problem is an error that says more than a line.
type problem struct {
	failure report.Failure
	err     error // may be nil
}

func (p *problem) Error() string { return p.failure.Message }
func (p *problem) Unwrap() error { return p.err }

// problemf returns a problem with a hint.
func problemf(hint, message string, arguments ...any) *problem {
	err := fmt.Errorf(message, arguments...)
	return &problem{report.Failure{Message: err.Error(), Hint: hint}, err}
}

// failureOf says of an error what the report says.
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

// longestMessage bounds a message: the API server repeats a whole object in some of its own.
const longestMessage = 700

// cut cuts a text that is too long to be shown.
func cut(text string, longest int) string {
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// differences puts what an assertion tree found into words.
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

// longestShown is how much of a value is shown in a line; the diff has all of it.
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
