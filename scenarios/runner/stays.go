package runner

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// staysAnnotation is the prefix of an annotation that ends in the name of a step. Its value is how long the step's
// asserts must stay true.
const staysAnnotation = "operator-lab.dev/stays."

var noWord = regexp.MustCompile(`[^a-z0-9]+`)

// slug converts a name for the key of an annotation: "Sings to the end" becomes sings-to-the-end.
func slug(name string) string {
	return strings.Trim(noWord.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

// staysOf returns how long the asserts of a step must stay true; 0 if there is no such annotation.
func staysOf(t *format.Test, step string) (time.Duration, error) {
	for key, value := range t.Annotations {
		name, ok := strings.CutPrefix(key, staysAnnotation)
		if !ok || name != step && slug(name) != slug(step) {
			continue
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return 0, problemf("a duration is a number and a unit, such as 5s", "the annotation %s is %q, which is no duration", key, value)
		}
		return d, nil
	}
	return 0, nil
}

// held is an assertion that came true.
type held struct {
	asserted *asserted
	report   *report.Operation
}

// stay repeatedly checks the assertions made since its last call, until they have stayed true for the required time. It
// reports whether they did.
func (s *stepRun) stay(ctx context.Context) bool {
	all := s.held
	s.held = nil
	if len(all) == 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	name := all[0].report.Name
	if len(all) > 1 {
		name = fmt.Sprintf("%d asserts", len(all))
	}
	op := s.beginOperation(s.report, report.Operation{
		Type: "stays", Phase: report.Try, Name: name + " for " + s.stays.String(),
		File: all[0].report.File, Line: all[0].report.Line,
	})
	began := time.Now()
	err := s.watch(ctx, all, began)
	s.endOperation(s.report, op, err)
	return err == nil
}

// watch returns an error as soon as an assertion no longer holds. If the API server does not answer, that is an error
// only if it lasts to the end.
func (s *stepRun) watch(ctx context.Context, all []held, began time.Time) error {
	limited, cancel := context.WithTimeout(ctx, s.stays)
	defer cancel()
	var unknown error
	look := func(ctx context.Context) error {
		unknown = nil
		for _, h := range all {
			now, err := h.asserted.look(ctx)
			switch {
			case err != nil && (forGood(err) || limited.Err() == nil):
				unknown = err
			case err == nil && !now.ok:
				passed := time.Since(began).Round(10 * time.Millisecond)
				p := h.asserted.problem(ctx, now, fmt.Sprintf("any more, %s after it came true", passed))
				p.failure.Message = fmt.Sprintf("stopped being true %s after it came true: %s", passed, p.failure.Message)
				return p
			}
		}
		return nil
	}
	for limited.Err() == nil {
		if err := look(ctx); err != nil {
			return err
		}
		if sleep(limited, longestPause) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := look(ctx); err != nil {
		return err
	}
	if unknown != nil {
		return fmt.Errorf("whether it stays true could not be told: %w", unknown)
	}
	return nil
}
