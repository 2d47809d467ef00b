package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// action is one unit of an operation: an operation on a file has one for each resource in it.
type action struct {
	// name is shown before the action runs.
	name string
	// position is where the resource is written.
	position format.Position
	// do runs the action.
	do func(context.Context, inherited, *doing) error
}

// doing is the state of a running action.
type doing struct {
	*stepRun
	// report is the action's entry in the report; the action may set a better name, and stores its output there.
	report *report.Operation
	// outputs are bindings for later operations.
	outputs []expression.Named
	// holds is the assertion that must stay true; nil if the action asserts nothing.
	holds *asserted
}

// operation runs one operation. It returns in with its outputs, and whether the step continues.
func (s *stepRun) operation(ctx context.Context, in inherited, phase report.Phase, op *format.Operation, i int) (inherited, bool) {
	// As in Chainsaw, the compiler of an operation also applies to the following operations of its step.
	in.scope = in.scope.WithCompiler(op.Compiler)
	actions, err := s.actions(ctx, in, op)
	if err != nil {
		o := s.beginOperation(s.report, report.Operation{
			Type: op.Type(), Phase: phase, Description: op.Description, File: op.Position.File, Line: op.Position.Line,
		})
		s.endOperation(s.report, o, err)
		return in, false
	}
	ok := true
	out := in
	for k, a := range actions {
		done := s.action(ctx, out.operation(i+1, k+1), phase, op, a)
		out = out.bind(done.outputs)
		if done.report.Status() != report.Passed {
			ok = false
		} else if done.holds != nil && phase == report.Try && s.stays > 0 {
			s.held = append(s.held, held{done.holds, done.report})
		}
	}
	goesOn := op.ContinueOnError != nil && *op.ContinueOnError && ctx.Err() == nil
	return out, ok || goesOn
}

// action runs one action and reports it.
func (s *stepRun) action(ctx context.Context, in inherited, phase report.Phase, op *format.Operation, a action) *doing {
	if a.position.File == "" {
		a.position = op.Position
	}
	d := &doing{stepRun: s}
	d.report = s.beginOperation(s.report, report.Operation{
		Type: op.Type(), Phase: phase, Name: a.name, Description: op.Description,
		File: a.position.File, Line: a.position.Line,
	})
	s.endOperation(s.report, d.report, a.do(ctx, in, d))
	return d
}

// actions returns the actions of an operation.
func (s *stepRun) actions(ctx context.Context, in inherited, op *format.Operation) ([]action, error) {
	switch {
	case op.Apply != nil:
		return s.writes(ctx, in, writing{verb: apply, Apply: *op.Apply})
	case op.Create != nil:
		return s.writes(ctx, in, writing{verb: create, Apply: format.Apply(*op.Create)})
	case op.Update != nil:
		return s.writes(ctx, in, writing{verb: update, Apply: format.Apply(*op.Update)})
	case op.Patch != nil:
		p := op.Patch
		return s.writes(ctx, in, writing{verb: patch, subresource: p.Subresource, Apply: format.Apply{
			ActionBindings: p.ActionBindings, ActionClusters: p.ActionClusters, ActionDryRun: p.ActionDryRun,
			ActionExpectations: p.ActionExpectations, ActionOutputs: p.ActionOutputs,
			ActionResourceRef: p.ActionResourceRef, ActionTimeout: p.ActionTimeout,
		}})
	case op.Delete != nil:
		return s.deletes(ctx, in, op.Delete)
	case op.Assert != nil:
		return s.asserts(ctx, in, op.Assert, false)
	case op.Error != nil:
		return s.asserts(ctx, in, (*format.Assert)(op.Error), true)
	case op.Sleep != nil:
		return []action{{name: op.Sleep.Duration.Duration.String(), do: func(ctx context.Context, _ inherited, _ *doing) error {
			return sleep(ctx, op.Sleep.Duration.Duration)
		}}}, nil
	case op.Script != nil:
		return []action{scriptAction(op.Script)}, nil
	case op.Command != nil:
		return []action{commandAction(op.Command)}, nil
	}
	return kubectlActions(op)
}

// resources returns the objects of an operation: the inline one, or those in files.
func (s *stepRun) resources(ctx context.Context, in inherited, inline any, file format.Expression, manifest bool) ([]resource, error) {
	if inline != nil {
		object, ok := inline.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("resource must be an object")
		}
		return []resource{{object: object}}, nil
	}
	if file == "" {
		return nil, fmt.Errorf("file or resource must be set")
	}
	name, err := in.scope.String(ctx, string(file))
	if err != nil {
		return nil, err
	}
	return s.load(ctx, name, manifest)
}

func isAssertion(op *format.Operation) bool { return op.Assert != nil || op.Error != nil }

// shorten shortens a text to one line.
func shorten(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || slices.Contains([]string{"set -e", "set -eu", "set -euo pipefail"}, line) {
			continue
		}
		return cut(line, longestName)
	}
	return ""
}

// longestName bounds the part of a script that is used as its name.
const longestName = 60
