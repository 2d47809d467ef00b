package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

// findOwn finds the operator of the user's that is judged, if it is one.
func (s *scoring) findOwn(ctx context.Context) error {
	if s.own == "" {
		return nil
	}
	if err := s.given.find(ctx, s.own, s.sayf); err != nil {
		return err
	}
	s.names = s.given.names
	s.nodes.take(s.given.own[0].project, s.flags)
	return nil
}

// loadOwn takes as evidence of the user's operator what its manifests show, scenarios that are made of its samples, and its
// own scenarios that are tagged.
func (s *scoring) loadOwn() error {
	own, name := s.given.own[0], s.names[0]
	scope := s.scope(name)
	s.takeManifests(scope, own.plan)
	if !own.tapped() {
		s.sayf("no scenario is made of the samples: the operator's loops are not seen, %s", own.project.NotLinked)
	} else if err := s.takeSampled(scope, own.plan, own.writeSampled); err != nil {
		return err
	}
	found, err := format.Discover(discoveryOf(s.configuration, []string{s.own}))
	if err != nil {
		return err
	}
	for _, loaded := range found {
		if loaded.Err != nil {
			s.sayf("left out: %s", oneLine(loaded.Err.Error()))
			continue
		}
		s.take(scope, loaded, false)
	}
	return nil
}

// loadSampled takes as evidence of a bundled operator what its manifests show, and scenarios that are made of its samples, as far
// as its own scenarios say nothing.
func (s *scoring) loadSampled(name string) error {
	scope := s.unshown(name)
	op, found := operators.Find(name)
	if !found || len(scope.Habits)+len(scope.Phases) == 0 {
		return nil
	}
	plan := &project.Plan{Sources: []string{"its manifests"}}
	for _, dir := range []string{path.Join("crds", scope.Variant), "manager", "samples"} {
		objects, err := kit.Objects(op.Manifests, dir)
		if err != nil {
			return err
		}
		if dir == "samples" {
			plan.Samples = []project.Sample{{File: dir, Objects: objects}}
		} else {
			plan.Objects = append(plan.Objects, objects...)
		}
	}
	s.takeManifests(scope, plan)
	return s.takeSampled(s.unshown(name), plan, unpackFiles)
}

// unshown returns the scope of what nothing that was taken speaks of.
func (s *scoring) unshown(name string) scorecard.Scope {
	var tags []scorecard.Tag
	for _, e := range s.evidence[name] {
		tags = append(tags, e.Tag)
	}
	return s.scope(name).Without(tags, s.lacks[name])
}

// takeManifests takes as evidence what manifests show without a run.
func (s *scoring) takeManifests(scope scorecard.Scope, plan *project.Plan) {
	if result, shows := scope.Manifests(plan, time.Now()); shows {
		s.evidence[scope.Operator] = append(s.evidence[scope.Operator], &evidence{Result: result})
	}
}

// writeSampled writes the scenarios that are made of the samples below the private directory, instead of earlier ones.
func (o *ownOperator) writeSampled(files map[string][]byte) (dir string, err error) {
	dir = filepath.Join(o.work.Dir, "scorecard")
	return dir, errors.Join(os.RemoveAll(dir), writeFolder(dir, files))
}

// takeSampled takes scenarios that are made of samples. write writes them, and returns the directory.
func (s *scoring) takeSampled(scope scorecard.Scope, plan *project.Plan, write func(map[string][]byte) (string, error)) error {
	files, err := scorecard.Samples(scope.Operator, plan)
	if err != nil {
		return sandboxError(err)
	}
	if len(files) == 0 {
		s.sayf("no scenario is made of the samples: none is of a kind that the manifests define")
		return nil
	}
	folder, err := write(files)
	if err != nil {
		return sandboxError(err)
	}
	found, err := format.Discover(discoveryOf(s.configuration, []string{folder}))
	if err != nil {
		return err
	}
	for _, loaded := range found {
		if loaded.Err != nil {
			return loaded.Err
		}
		s.take(scope, loaded, true)
	}
	return nil
}

// shows reports whether a run of a scenario shows anything, and says why if not.
func (s *scoring) shows(e *evidence, journal *trace.Journal) bool {
	reason, shows := scorecard.Shows(e.Name, e.Operator, journal)
	if !shows {
		fmt.Fprintf(s.io.err, "%s shows nothing: %s\n", e.Name, reason)
	}
	return shows
}
