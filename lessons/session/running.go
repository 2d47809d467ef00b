package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/lessons/workshop"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/traffic"
)

// SandboxName is the name of the sandbox of the running lesson.
const SandboxName = "lesson"

// Errors of a lesson that cannot be opened, for [errors.Is].
var (
	// ErrLesson says that the files of the lesson are wrong.
	ErrLesson = errors.New("the lesson is wrong")
	// ErrSandbox says that its sandbox could not start.
	ErrSandbox = errors.New("the sandbox could not start")
)

// openError is an error of one of the kinds above. Its text is that of the error alone.
type openError struct {
	error
	kind error
}

func (e openError) Is(target error) bool { return target == e.kind }

func (e openError) Unwrap() error { return e.error }

// Running is a running lesson.
type Running struct {
	// Lesson is the lesson.
	Lesson *book.Lesson
	// Sandbox is the lesson's sandbox. Nobody else uses it.
	Sandbox *sandbox.Sandbox
	// Lab is the lab in the sandbox.
	Lab *lab.Lab
	// Tutor is the tutor of the lesson.
	Tutor *tutor.Tutor
	// Workshop runs the operators that the learner writes; nil if there are none.
	Workshop *workshop.Workshop

	// dir is the learner's directory.
	dir string
	// recordings stop the recordings of the lesson's URL and of its etcd cluster.
	recordings []func()
	listener   lab.Listener
	poke       atomic.Pointer[tutor.Tutor]
}

// start boots the sandbox of a lesson, with a name or, if it is empty, a generated one. The lesson's operators do not run
// yet: the tutor starts them. loaded is called when an operator that the learner writes runs for the first time.
func (o *Options) start(ctx context.Context, lesson *book.Lesson, name, dir string, opening Opening, loaded func()) (_ *Running, err error) {
	r := &Running{Lesson: lesson, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	box := o.Sandbox
	box.Name, box.Fresh, box.Ephemeral, box.Progress = name, true, true, opening.Step
	box.Nodes, box.OLM = lesson.Nodes, lesson.OLM
	if err := haveAll(lesson); err != nil {
		return nil, openError{err, ErrLesson}
	}
	installed, err := addOperators(&box, lesson)
	if err != nil {
		return nil, err
	}
	var programs []lab.Program
	if r.Workshop, err = workshop.New(workshop.Options{
		Dir: dir, Operators: lesson.Operators, Language: o.Language, Loaded: loaded,
		Environment: func() []string { return sandbox.Environment(r.Sandbox.Dir(), r.Sandbox.Proxy()) },
	}); err != nil {
		return nil, err
	} else if r.Workshop != nil {
		programs = r.Workshop.Programs()
	}
	r.listen(&box)
	if r.Sandbox, err = sandbox.Start(ctx, box); err != nil {
		return nil, openError{taken(err), ErrSandbox}
	}
	if r.Lab, err = lab.Open(ctx, lab.Options{
		Cluster: r.Sandbox, Programs: programs, Kill: r.Sandbox.Kill, Machines: r.Sandbox.Nodes(), Installed: installed, Version: box.Version, Seed: 1,
		Journal: opening.Journal, Dir: filepath.Join(r.Sandbox.Dir(), "operators"),
	}); err != nil {
		return nil, openError{err, ErrSandbox}
	}
	r.listener.Set(r.Lab)
	return r, nil
}

// addOperators adds the operators of a lesson to the options of its sandbox, and returns their variants.
func addOperators(o *sandbox.Options, lesson *book.Lesson) (map[string]string, error) {
	installed := map[string]string{}
	for _, wanted := range lesson.Operators {
		if wanted.Hook != "" {
			crds, err := metacontroller.CRDs()
			if err != nil {
				return nil, err
			}
			o.CRDs = append(o.CRDs, crds...)
		}
		if wanted.Own() {
			continue
		}
		op, found := operators.Find(wanted.Name)
		if !found {
			return nil, openError{unknownOperator(wanted.Name), ErrLesson}
		}
		instance, err := lab.InstanceOf(op, v1alpha1.OperatorSpec{Variant: wanted.Variant, Parameters: wanted.Parameters})
		if err != nil {
			return nil, openError{&sandbox.Problem{Err: err, Hint: "mend the lesson.yaml"}, ErrLesson}
		}
		crds, err := instance.CRDs()
		if err != nil {
			return nil, err
		}
		o.CRDs = append(o.CRDs, crds...)
		o.Operators = append(o.Operators, op.Name)
		installed[op.Name] = instance.Variant()
	}
	return installed, nil
}

// Missing returns a program that a lesson needs and the machine lacks; empty if it has all.
func Missing(lesson *book.Lesson) string {
	for _, program := range lesson.Needs {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// haveAll returns an error if the machine lacks a program that a lesson needs.
func haveAll(lesson *book.Lesson) error {
	program := Missing(lesson)
	hint := "install it, and begin again"
	switch program {
	case "":
		return nil
	case "go":
		hint = "install Go from https://go.dev/dl, and begin again"
	case "ansible-runner":
		hint = project.AnsibleHint + ", and begin again"
	}
	return &sandbox.Problem{Err: fmt.Errorf("the lesson %s needs %s, which is not in the PATH", lesson.ID, program), Hint: hint}
}

func unknownOperator(name string) error {
	return &sandbox.Problem{
		Err:  fmt.Errorf("there is no bundled operator %q", name),
		Hint: "operators: " + strings.Join(operators.Names(), ", "),
	}
}

// taken says what it means that the name of the sandbox is taken.
func taken(err error) error {
	if !errors.Is(err, sandbox.ErrNameTaken) {
		return err
	}
	return &sandbox.Problem{
		Err:  errors.New("a lesson is under way already, in another terminal"),
		Hint: "go on there, or end it with q there; 'operator-lab lesson shell' opens a shell in it",
	}
}

// listen has the sandbox report writes and ended programs to the lab, and writes to the tutor.
func (r *Running) listen(o *sandbox.Options) {
	r.listener.Listen(o)
	audit := o.OnAudit
	o.OnAudit = func(line []byte) {
		audit(line)
		if t := r.poke.Load(); t != nil {
			t.Poke()
		}
	}
}

// teach creates the tutor.
func (r *Running) teach(ctx context.Context, kubectl string, o tutor.Options) error {
	o.Lesson = r.Lesson
	o.Sandbox, o.Lab, o.Kubectl = r.Sandbox, r.Lab, kubectl
	path, err := searchPath(kubectl)
	if err != nil {
		return err
	}
	o.Environment = append(sandbox.Environment(r.Sandbox.Dir(), r.Sandbox.Proxy()), path, "LESSON_DIR="+r.dir)
	o.Workshop = r.Workshop
	// An undo begins another journal, in which the recordings go on.
	o.Moved = func(journal *trace.Journal) { r.record(ctx, journal) }
	r.Tutor = tutor.New(o)
	r.poke.Store(r.Tutor)
	if r.Workshop != nil {
		if err := r.Workshop.Follow(ctx, r.Lab); err != nil {
			return err
		}
	}
	r.record(ctx, r.Lab.Journal())
	return nil
}

// record records the lesson's URL and its etcd cluster, if it has them, in a journal, and no longer in an earlier one. It
// ignores errors: the lesson works without these recordings.
func (r *Running) record(ctx context.Context, journal *trace.Journal) {
	r.stopRecording()
	if url := r.Lesson.Ask; url != "" {
		if stop, err := traffic.RecordThrough(ctx, r.Sandbox.Proxy(), journal, url); err == nil {
			r.recordings = append(r.recordings, stop)
		}
	}
	if namespace, name, found := strings.Cut(r.Lesson.Store, "/"); found {
		o := members.Options{Config: r.Sandbox.Config(), Dial: r.Sandbox.DialContext}
		if stop, err := members.RecordAll(ctx, o, journal, types.NamespacedName{Namespace: namespace, Name: name}); err == nil {
			r.recordings = append(r.recordings, stop)
		}
	}
}

func (r *Running) stopRecording() {
	for _, stop := range r.recordings {
		stop()
	}
	r.recordings = nil
}

// close stops the recordings, the lab and the sandbox.
func (r *Running) close(ctx context.Context) error {
	var errs []error
	r.stopRecording()
	if r.Lab != nil {
		errs = append(errs, r.Lab.Close(context.WithoutCancel(ctx)))
	}
	if r.Workshop != nil {
		errs = append(errs, r.Workshop.Close())
	}
	if r.Sandbox != nil {
		errs = append(errs, r.Sandbox.Stop())
	}
	return errors.Join(errs...)
}

// Verify verifies a lesson in a sandbox of its own; see [tutor.Tutor.Verify].
func Verify(ctx context.Context, o Options, lesson *book.Lesson) (verdict *tutor.Verdict, err error) {
	dir, err := os.MkdirTemp("", "operator-lab-lesson-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := o.start(ctx, lesson, "", dir, Opening{}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.teach(ctx, o.Kubectl, tutor.Options{Dir: dir}); err != nil {
		return nil, err
	}
	return r.Tutor.Verify(ctx)
}
