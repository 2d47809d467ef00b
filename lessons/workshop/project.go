package workshop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	source "github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// project is an operator that is built of a folder in the learner's directory: a Go module, or Helm charts. The folder may
// be missing at first.
type project struct {
	workshop *Workshop
	name     string

	mu   sync.Mutex
	work *source.Work
	// current is what runs, or is to run next; nil: that of the folder as it is then.
	current *source.Operator
	// linked says that it runs in the lab's process, as operators of Helm charts do: nothing is built.
	linked bool
	// taken is the digest of the files that were looked at last.
	taken string
	// earlier are those that are not to run any more. Their processes may be about to end.
	earlier []*source.Operator
}

func (p *project) path() string { return filepath.Join(p.workshop.options.Dir, p.name) }

// Name returns the name of the folder.
func (p *project) Name() string { return p.name }

// Complete refuses a variant and parameters.
func (p *project) Complete(spec v1alpha1.OperatorSpec) (v1alpha1.OperatorSpec, error) {
	op, err := p.operator(context.Background())
	if err != nil {
		return spec, err
	}
	return op.Complete(spec)
}

// Taps returns the taps of its runs. Complete was called before.
func (p *project) Taps(journal *trace.Journal) lab.Taps {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.Taps(journal)
}

// Start begins a run of what the folder was when it was looked at last.
func (p *project) Start(ctx context.Context, o lab.RunOptions) (lab.Run, error) {
	op, err := p.operator(ctx)
	if err != nil {
		return nil, err
	}
	return op.Start(ctx, o)
}

// operator returns what is to run.
func (p *project) operator(ctx context.Context) (_ *source.Operator, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		p.taken = digestOf(p.path())
		p.current, err = p.find(ctx)
	}
	return p.current, err
}

// find makes an operator of the folder.
func (p *project) find(ctx context.Context) (*source.Operator, error) {
	if !p.begun() {
		return nil, &sandbox.Problem{
			Err:  fmt.Errorf("there is no project in %s", p.path()),
			Hint: "'operator-lab new operator " + p.name + "' makes one there",
		}
	}
	if p.work == nil {
		work, err := source.OpenWork(p.path())
		if err != nil {
			return nil, err
		}
		p.work = work
	}
	found, err := source.Find(ctx, source.Options{Dir: p.path(), WorkDir: p.work.Dir})
	if err != nil {
		return nil, err
	}
	if found.Name != p.name {
		return nil, fmt.Errorf("the operator in %s is called %s, and this lesson is about %s", p.path(), found.Name, p.name)
	}
	p.linked = found.Watches != "" && found.Ansible == nil
	plan, err := found.Plan(ctx)
	if err != nil {
		return nil, err
	}
	return source.NewOperator(source.OperatorOptions{
		Project: found, Plan: plan, ClusterEnv: p.workshop.options.Environment, NoLeaderElection: true,
	}), nil
}

// begun reports whether the folder has a project.
func (p *project) begun() bool {
	for _, file := range []string{"go.mod", "watches.yaml"} {
		if _, err := os.Stat(filepath.Join(p.path(), file)); err == nil {
			return true
		}
	}
	return false
}

// look builds the project if it has changed. What does not compile changes nothing.
func (p *project) look(ctx context.Context, l *lab.Lab) (note string, first bool) {
	sum := digestOf(p.path())
	p.mu.Lock()
	taken := p.taken
	p.mu.Unlock()
	if sum == taken || !p.begun() {
		return "", false
	}
	began := time.Now()
	loaded := l.Taps(p.name) != nil
	next, err := p.build(ctx, !loaded)
	p.mu.Lock()
	if p.taken = sum; ctx.Err() != nil {
		p.taken = ""
	}
	if err == nil {
		p.retire()
		p.current = next
	}
	p.mu.Unlock()
	switch {
	case err != nil && loaded:
		return p.workshop.textf("%v; the operator runs on as it was", "%v。オペレーターは元のまま動いています", err), false
	case err != nil:
		return p.workshop.textf("%s does not start: %v", "%s は起動しません: %v", p.name, err), false
	case loaded:
		l.Restart(p.name)
		return p.told(began, true), false
	}
	if _, err := l.Load(ctx, p.name, v1alpha1.OperatorSpec{}); err != nil {
		return p.workshop.textf("%s does not run: %v", "%s が動きません: %v", p.name, err), true
	}
	return p.told(began, false), true
}

// told says that the operator runs, and how long its build took if there was something to build. again: it ran before.
func (p *project) told(began time.Time, again bool) string {
	p.mu.Lock()
	linked := p.linked
	p.mu.Unlock()
	took := time.Since(began).Seconds()
	switch {
	case linked && again:
		return p.workshop.textf("%s has changed; its next life begins", "%s が変わりました。新しく起動します", p.name)
	case linked:
		return p.workshop.textf("%s runs", "%s を起動しました", p.name)
	case again:
		return p.workshop.textf("%s was built again in %.1fs; its next life begins", "%s をビルドし直しました (%.1f 秒)。新しく起動します", p.name, took)
	}
	return p.workshop.textf("%s was built in %.1fs, and runs", "%s をビルドして起動しました (%.1f 秒)", p.name, took)
}

// build makes an operator of the folder and builds it. The first time the learner is told that this takes a while.
func (p *project) build(ctx context.Context, first bool) (*source.Operator, error) {
	p.mu.Lock()
	op, err := p.find(ctx)
	linked := p.linked
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if first && !linked {
		p.workshop.tell(p.workshop.textf("%s is being built; the first build may take some minutes", "%s をビルドしています。最初のビルドには数分かかることがあります", p.name))
	}
	if err := op.Build(ctx); err != nil {
		op.Close()
		return nil, err
	}
	return op, nil
}

// retire keeps what is not to run any more until the end.
func (p *project) retire() {
	if p.current != nil {
		p.earlier = append(p.earlier, p.current)
	}
	p.current = nil
}

func (p *project) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire()
	p.taken = ""
}

func (p *project) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire()
	for _, op := range p.earlier {
		op.Close()
	}
	if p.work != nil {
		p.work.Close()
	}
}

// Source returns a file of the learner's project, as it is in the source of a loop, and whether it has changed since the
// operator was built. The error is errors.ErrUnsupported if the operator is none of the workshop.
func (w *Workshop) Source(operator, file string) (text string, changed bool, err error) {
	for _, one := range w.owns {
		if p, is := one.(*project); is && p.name == operator {
			op, err := p.operator(context.Background())
			if err != nil {
				return "", false, err
			}
			return op.Source(file)
		}
	}
	return "", false, errors.ErrUnsupported
}
