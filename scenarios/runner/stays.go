package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

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
