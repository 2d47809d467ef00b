package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
	if result, shows := s.scope(name).Manifests(own.plan, time.Now()); shows {
		s.evidence[name] = append(s.evidence[name], &evidence{Result: result})
	}
	made := filepath.Join(own.work.Dir, "scorecard")
	if err := s.writeSampled(own, made); err != nil {
		return sandboxError(err)
	}
	found, err := format.Discover(discoveryOf(s.configuration, []string{made, s.own}))
	if err != nil {
		return err
	}
	for _, loaded := range found {
		if loaded.Err != nil {
			s.sayf("left out: %s", oneLine(loaded.Err.Error()))
			continue
		}
		s.take(name, loaded)
	}
	return nil
}

// writeSampled writes the scenarios that are made of the samples below a directory.
func (s *scoring) writeSampled(own *ownOperator, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if !own.tapped() {
		s.sayf("no scenario is made of the samples: the operator's loops are not seen, %s", own.project.NotLinked)
		return nil
	}
	files, err := scorecard.Samples(own.project.Name, own.plan)
	if len(files) == 0 && err == nil {
		s.sayf("no scenario is made of the samples: none is of a kind that the manifests define")
	}
	for name, content := range files {
		folder := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "chainsaw-test.yaml"), content, 0o600))
	}
	return err
}

// shows reports whether a run of a scenario shows anything, and says why if not.
func (s *scoring) shows(e *evidence, journal *trace.Journal) bool {
	reason, shows := scorecard.Shows(e.Name, e.Operator, journal)
	if !shows {
		fmt.Fprintf(s.io.err, "%s shows nothing: %s\n", e.Name, reason)
	}
	return shows
}
