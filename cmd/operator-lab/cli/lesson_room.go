package cli

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/traffic"
)

// lessonSandbox is the name of the sandbox that the lesson under way has for itself.
const lessonSandbox = "lesson"

// lessonRoom is the sandbox of one lesson, with the lab in it, and who watches what goes on there.
type lessonRoom struct {
	lesson  *book.Lesson
	sandbox *sandbox.Sandbox
	lab     *lab.Lab
	tutor   *tutor.Tutor
	// recordings end what records the lesson's URL and its etcd cluster.
	recordings []func()
	listener   lab.Listener
	poke       atomic.Pointer[tutor.Tutor]
}

// lessonRoomOptions are what differs between a lesson that is taught and one that is verified.
type lessonRoomOptions struct {
	name     string // of the sandbox; empty: one of its own
	progress func(sandbox.Step)
	journal  *trace.Journal // of the beginning; nil: a new one
}

// openLessonRoom boots the sandbox of a lesson. Its operators do not run yet: the tutor begins with them.
func openLessonRoom(ctx context.Context, io streams, lesson *book.Lesson, f lessonRoomOptions) (_ *lessonRoom, err error) {
	quietLibraries()
	r := &lessonRoom{lesson: lesson}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	o, err := sandboxOptions(io.err, true)
	if err != nil {
		return nil, err
	}
	o.Name, o.Fresh, o.Ephemeral, o.Nodes, o.Progress = f.name, true, true, lesson.Nodes, f.progress
	installed := map[string]string{}
	for _, wanted := range lesson.Operators {
		op, found := operators.Find(wanted.Name)
		if !found {
			return nil, unknownOperator(wanted.Name)
		}
		instance, err := lab.InstanceOf(op, v1alpha1.OperatorSpec{Variant: wanted.Variant, Parameters: wanted.Parameters})
		if err != nil {
			return nil, usageError("mend the lesson.yaml", "%w", err)
		}
		crds, err := instance.CRDs()
		if err != nil {
			return nil, err
		}
		o.CRDs = append(o.CRDs, crds...)
		o.Operators = append(o.Operators, op.Name)
		installed[op.Name] = instance.Variant()
	}
	r.listen(&o)
	if r.sandbox, err = sandbox.Start(ctx, o); err != nil {
		return nil, sandboxError(lessonUnderWay(err))
	}
	if r.lab, err = lab.Open(ctx, lab.Options{
		Cluster: r.sandbox, Kill: r.sandbox.Kill, Machines: r.sandbox, Installed: installed, Version: version(), Seed: 1,
		Journal: f.journal,
	}); err != nil {
		return nil, sandboxError(err)
	}
	r.listener.Set(r.lab)
	return r, nil
}

// lessonUnderWay says of a sandbox whose name is taken what that means here.
func lessonUnderWay(err error) error {
	if !errors.Is(err, sandbox.ErrNameTaken) {
		return err
	}
	return &sandbox.Problem{
		Err:  errors.New("a lesson is under way already, in another terminal"),
		Hint: "go on there, or end it with q there; 'operator-lab lesson shell' opens a shell in it",
	}
}

// listen has the sandbox tell the lab and the tutor of what is written.
func (r *lessonRoom) listen(o *sandbox.Options) {
	r.listener.Listen(o)
	audit := o.OnAudit
	o.OnAudit = func(line []byte) {
		audit(line)
		if t := r.poke.Load(); t != nil {
			t.Poke()
		}
	}
}

// teach makes the tutor.
func (r *lessonRoom) teach(ctx context.Context, o tutor.Options) error {
	kubectl, err := ownKubectl()
	if err != nil {
		return err
	}
	o.Lesson = r.lesson
	o.Room = tutor.Room{
		Sandbox: r.sandbox, Lab: r.lab, Kubectl: kubectl, Environment: sandbox.Environment(r.sandbox.Dir(), r.sandbox.Proxy()),
	}
	// Who watches goes on in the journal that an undo begins.
	o.Moved = func(journal *trace.Journal) { r.record(ctx, journal) }
	r.tutor = tutor.New(o)
	r.poke.Store(r.tutor)
	r.record(ctx, r.lab.Journal())
	return nil
}

// record records the lesson's URL and its etcd cluster, if it has them, in a journal instead of in an earlier one. Without
// either there is less to see, but nothing to learn is lost.
func (r *lessonRoom) record(ctx context.Context, journal *trace.Journal) {
	r.stopRecording()
	if url := r.lesson.Ask; url != "" {
		if stop, err := traffic.RecordThrough(ctx, r.sandbox.Proxy(), journal, url); err == nil {
			r.recordings = append(r.recordings, stop)
		}
	}
	if namespace, name, found := strings.Cut(r.lesson.Store, "/"); found {
		o := members.Options{Config: r.sandbox.Config(), Dial: r.sandbox.DialContext}
		if stop, err := members.RecordAll(ctx, o, journal, types.NamespacedName{Namespace: namespace, Name: name}); err == nil {
			r.recordings = append(r.recordings, stop)
		}
	}
}

func (r *lessonRoom) stopRecording() {
	for _, stop := range r.recordings {
		stop()
	}
	r.recordings = nil
}

// close ends all that goes on in it, and the sandbox.
func (r *lessonRoom) close(ctx context.Context) error {
	var errs []error
	r.stopRecording()
	if r.lab != nil {
		errs = append(errs, r.lab.Close(context.WithoutCancel(ctx)))
	}
	if r.sandbox != nil {
		errs = append(errs, r.sandbox.Stop())
	}
	return errors.Join(errs...)
}
