package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/process"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// ownOperator is the subject of a run of an operator of the user's: a project that is built, or any program.
type ownOperator struct {
	noDemo
	flags   *ownFlags
	project *project.Project
	plan    *project.Plan
	// toApply are the samples in the files that --apply names.
	toApply []project.Sample
	// cluster is that of the user's where it runs; nil: it runs in a sandbox.
	cluster *userCluster
	// lacks are the CRDs of the manifests that the cluster does not have.
	lacks []string
	// work is its private directory.
	work *project.Work
	// command is the program; empty for a project. args are added to its arguments.
	command string
	args    []string

	say      func(format string, args ...any)
	step     func(tui.Step) // shows how far the build is
	target   *target
	operator *project.Operator

	// watcher tells of changes of the source; nil without --watch. watching is the goroutine that follows it.
	watcher  *fsnotify.Watcher
	watching sync.WaitGroup
}

// tapped reports whether the program has the taps.
func (o *ownOperator) tapped() bool { return o.command == "" && o.project.Linked && !o.flags.noTaps }

// title says on the screen what the operator was built with, and where it runs, unless that is a sandbox.
func (o *ownOperator) title() string {
	title := o.project.Name // the screen adds what is seen of a program without taps
	switch {
	case o.project.Watches != "":
		title += " / helm-operator-plugins " + dependency(helm.Module)
	case o.project.Hooked:
		if o.project.Hook != "" {
			title += " / " + filepath.Base(o.project.Hook)
		}
	case o.project.Ansible != nil:
		title += " / ansible-operator-plugins " + project.AnsibleVersion
	case o.tapped():
		title += " / " + o.project.ControllerRuntime
	}
	if o.cluster != nil {
		title += " @ " + o.cluster.config.Host
	}
	return o.flags.nodes.titled(title)
}

// sandbox begins to build while the sandbox boots.
func (o *ownOperator) sandbox(*sandbox.Options) error {
	o.startBuild()
	return nil
}

func (o *ownOperator) kept(*upFlags) { o.startBuild() }

// startBuild begins to build the project, if it is one and that has not begun.
func (o *ownOperator) startBuild() {
	if o.operator != nil {
		return
	}
	build, compiled := tui.Step{Name: "go build", Detail: o.project.MainPath}, 0
	if o.command == "" && !o.project.InProcess() {
		o.step(build)
	}
	o.operator = project.NewOperator(project.OperatorOptions{
		Project: o.project, Plan: o.plan, Program: o.command, Args: o.args, Env: o.flags.env,
		ClusterEnv: func() []string { return o.target.environment() },
		NoTaps:     o.flags.noTaps, NoWebhooks: o.flags.noWebhooks, Untouched: o.cluster != nil,
		Compiling: func(path string) {
			compiled++
			now := build
			now.Detail = fmt.Sprintf("%d: %s", compiled, path)
			o.step(now)
		},
		Built: func(took time.Duration) {
			done := build
			done.Done, done.Took = true, took
			o.step(done)
			o.say("built %s in %.1fs", o.project.MainPath, took.Seconds())
		},
	})
	go func() { _ = o.operator.Build(context.Background()) }() // lab has the error
}

// lab gives the lab the operator's program.
func (o *ownOperator) lab(ctx context.Context, t *target, options *lab.Options) error {
	o.target = t
	if o.cluster != nil {
		if err := o.prepareCluster(ctx); err != nil {
			return err
		}
	}
	o.startBuild()
	options.Programs = append(options.Programs, o.operator)
	err := o.operator.Build(ctx) // before anybody waits for the operator
	if _, is := errors.AsType[*project.BuildError](err); is {
		return usageOf(err)
	}
	return err
}

// beside returns the operator for each of several labs that play side by side: for one only, if it cannot run twice. What is returned
// with it closes those that were added.
func (o *ownOperator) beside(labs int) (programs []lab.Program, closeAll func(), err error) {
	programs = []lab.Program{o.operator}
	var added []*process.Operator
	closeAll = func() {
		for _, another := range added {
			another.Close()
		}
	}
	for i := 1; i < labs; i++ {
		another, err := o.operator.Beside(filepath.Join(o.work.Dir, "beside", strconv.Itoa(i)))
		if err != nil || another == nil {
			return programs, closeAll, err
		}
		programs, added = append(programs, another), append(added, another)
	}
	return programs, closeAll, nil
}

// begin applies what --apply names, and begins to watch the source with --watch.
func (o *ownOperator) begin(ctx context.Context, s *liveOperator) error {
	o.tellNotes(s)
	if o.flags.watch || o.project.Hooked {
		if err := o.watch(s); err != nil {
			return err
		}
	}
	if slices.Contains(o.flags.apply, allSamples) {
		for _, sample := range o.plan.Samples {
			if err := sample.Apply(ctx, s.you, lab.Person); err != nil {
				s.note(err.Error()) // a scaffold's samples are not valid yet
			}
		}
	}
	for _, sample := range o.toApply {
		if err := sample.Apply(ctx, s.you, lab.Person); err != nil {
			return err
		}
	}
	return nil
}

// examples are the samples of the project, and those that --apply names.
func (o *ownOperator) examples() []project.Sample {
	all := slices.Clone(o.plan.Samples)
	for _, sample := range o.toApply {
		if !slices.ContainsFunc(all, func(of project.Sample) bool { return of.File == sample.File }) {
			all = append(all, sample)
		}
	}
	return all
}

// tellNotes puts what differs from a real deployment into the journal, so that it is on the screen.
func (o *ownOperator) tellNotes(s *liveOperator) {
	s.tell(o.notes())
	if !o.tapped() { // last: the screen shows the newest
		s.note(o.levelText())
	}
}

// tell puts notes into the journal.
func (s *liveOperator) tell(notes []project.Note) {
	language := s.flags.look.language()
	for _, n := range notes {
		text := n.Text(language)
		if hint := n.Hint(language); hint != "" {
			text += " (" + hint + ")"
		}
		s.note(text)
	}
}

// levelText says what is seen of a program without taps, and how more would be.
func (o *ownOperator) levelText() string {
	japanese := o.flags.look.language() == trace.Japanese
	text := "This program has no taps. Its requests and what it is told are seen at the gate; its work queue, its reconciles and its cache are not."
	if japanese {
		text = "このプログラムにはタップがありません。見えるのはゲートを通るリクエストと watch イベントだけで、キュー、reconcile、キャッシュは見えません。"
	}
	switch {
	case o.saysMore() && japanese:
		text = "このプログラムにはタップがありません。リクエストと watch イベントはゲートで見えます。reconcile は、プログラムのログに出てくれば見えます。キューとキャッシュは見えません。"
	case o.saysMore():
		text = "This program has no taps. Its requests and what it is told are seen at the gate, its reconciles once its log tells of them; its work queue and its cache are not."
	case o.couldSayMore() && japanese:
		text += "引数 " + strings.Join(project.LogArguments, " ") + " を加えると、ログから reconcile も分かります。"
	case o.couldSayMore():
		text += " With the arguments " + strings.Join(project.LogArguments, " ") + " its log would tell of its reconciles, too."
	}
	return text
}

// saysMore reports whether the program was told to log when its reconciles begin and end.
func (o *ownOperator) saysMore() bool {
	return project.HasLogArguments(slices.Concat(o.plan.Args, o.args))
}

// couldSayMore reports whether it is known that the program would take these arguments.
func (o *ownOperator) couldSayMore() bool {
	return o.command != "" && !o.saysMore() && project.TakesLogArguments(o.command)
}

// servesWebhooks reports whether webhook configurations are installed.
func (o *ownOperator) servesWebhooks() bool {
	return !o.flags.noWebhooks && !o.project.InProcess() && o.plan.ServesWebhooks(o.tapped(), slices.Concat(o.args, o.flags.env))
}

// notes are those of the plan, and one about webhooks that are not installed.
func (o *ownOperator) notes() []project.Note {
	if len(o.plan.Webhooks) == 0 || o.cluster != nil || o.flags.noWebhooks || o.servesWebhooks() {
		return o.plan.Notes
	}
	return append(slices.Clip(o.plan.Notes), project.Note{Kind: project.WebhooksWithout, Values: []any{o.plan.CertDir}})
}

// notef puts a note into the journal in the language of the screen.
func (o *ownOperator) notef(s *liveOperator, english, japanese string, args ...any) {
	s.note(fmt.Sprintf(o.flags.look.language().Choose(english, japanese), args...))
}

func (o *ownOperator) samples(s *liveOperator) []tui.Sample { return offer(s, o.examples()) }

// offer offers samples to be applied.
func offer(s *liveOperator, samples []project.Sample) []tui.Sample {
	var out []tui.Sample
	for _, sample := range samples {
		out = append(out, tui.Sample{Text: sample.File, Apply: func(ctx context.Context) error { return sample.Apply(ctx, s.you, lab.Person) }})
	}
	return out
}

// noDemo is what runs without a demo have in common: they know no kinds.
type noDemo struct{}

func (noDemo) addToScheme(*runtime.Scheme) error { return nil }

func (noDemo) caption(string, json.RawMessage) string { return "" }

func (noDemo) paced() tui.Demo { return nil }

// awaitEnd waits until the person has seen enough: Ctrl-C, or the time of --for.
func (o *ownOperator) awaitEnd(ctx context.Context, s *liveOperator) error {
	return awaitOwnEnd(ctx, s, o.flags.until)
}

// awaitOwnEnd waits for the end of a run without a demo; until is the time of --for.
func awaitOwnEnd(ctx context.Context, s *liveOperator, until time.Duration) error {
	var over <-chan time.Time
	if until > 0 {
		timer := time.NewTimer(until)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return nil
	case <-over:
		return nil
	case <-s.target.done:
		return sandboxError(s.target.err())
	case <-s.lab.Failed(s.name):
		return s.lab.Err(s.name)
	}
}

// summary says where the program's own words are.
func (o *ownOperator) summary(context.Context, *liveOperator) error {
	if !o.project.InProcess() { // else its log is in the journal only
		o.say("log        %s", o.operator.LogFile())
	}
	return nil
}

// end stops watching the source.
func (o *ownOperator) end() error {
	if o.watcher == nil {
		return nil
	}
	err := o.watcher.Close()
	o.watching.Wait()
	return err
}

// close kills what is left of the program and unlocks its directory.
func (o *ownOperator) close() {
	if o.operator != nil {
		o.operator.Close()
	}
	if o.work != nil {
		o.work.Close()
	}
}

// seen says in a few words what is seen of a program without taps.
func (o *ownOperator) seen() string {
	if o.saysMore() {
		return "its requests, and the reconciles that its log tells of (level 2: logs and gate)"
	}
	return "its requests (level 3: gate only)"
}

// describeSource says what the operator is made of, by a function that prints a line.
func (o *ownOperator) describeSource(line func(name, format string, args ...any)) {
	p := o.project
	if p.Ansible == nil {
		line("main", "%s in %s, go %s", p.MainPath, p.Root, p.GoVersion)
		return
	}
	for _, r := range p.Ansible.Runs {
		what, name := "role", r.Role
		if name == "" {
			what, name = "playbook", r.Playbook
		}
		line(what, "%s for %s of %s", name, r.Kind, r.APIVersion)
	}
	line("main", "%s %s, go %s", p.MainPath, project.AnsibleVersion, p.GoVersion)
}

// describing returns a function that prints a line of what --dry-run describes.
func describing(w io.Writer) func(name, format string, args ...any) {
	return func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
}

// describeObjects prints the objects that are applied, after that word.
func describeObjects(line func(name, format string, args ...any), applies string, plan *project.Plan) {
	for _, u := range plan.Objects {
		line(applies, "%s %s", u.GetKind(), filepath.Join(u.GetNamespace(), u.GetName()))
	}
}

// describeLeftOut prints the objects that are not.
func describeLeftOut(line func(name, format string, args ...any), plan *project.Plan) {
	for _, l := range plan.LeftOut {
		line("leaves out", "%s %s: %s", l.Kind, filepath.Join(l.Namespace, l.Name), l.Reason)
	}
}

// describeNotes prints notes, each with its hint.
func describeNotes(line func(name, format string, args ...any), notes []project.Note) {
	for _, n := range notes {
		line("note", "%s", n.Text(trace.English))
		if hint := n.Hint(trace.English); hint != "" {
			line("", "hint: %s", hint)
		}
	}
}

// describe prints what was found, for --dry-run.
func (o *ownOperator) describe(w io.Writer) {
	line := describing(w)
	p, plan := o.project, o.plan
	line("operator", "%s", p.Name)
	switch {
	case o.command != "":
		line("program", "%s", strings.Join(append([]string{o.command}, o.args...), " "))
		line("seen", "%s", o.seen())
		if o.couldSayMore() {
			line("", "hint: with %s its log tells of its reconciles", strings.Join(project.LogArguments, " "))
		}
	case p.Watches != "":
		for _, c := range p.Charts {
			line("chart", "%s for %s of %s", c.Dir, c.Kind, c.APIVersion)
		}
		line("seen", "all of its loop: helm-operator-plugins %s runs in this process, with taps", dependency(helm.Module))
	case p.Hooked:
		line("hook", "%s", cmp.Or(p.Hook, "the servers that the webhooks name"))
		line("seen", "all of its loop, and what the webhooks were sent and answered")
	case o.tapped():
		o.describeSource(line)
		line("seen", "all of its loop: built with taps for controller-runtime %s", p.ControllerRuntime)
	default:
		o.describeSource(line)
		why := p.NotLinked
		if o.flags.noTaps {
			why = "--no-taps"
		}
		line("seen", "%s: %s", o.seen(), why)
	}
	account := "the cluster's administrator"
	if o.cluster != nil {
		line("cluster", "%s", o.cluster)
		account = "you"
	}
	if p.Hooked {
		op := operators.Metacontroller(nil)
		account = op.Namespace + "/" + op.ServiceAccount
	} else if plan.ServiceAccount != "" {
		account = plan.Namespace + "/" + plan.ServiceAccount
		if o.cluster != nil {
			account += ", if it exists there; else you"
		}
	}
	line("account", "%s", account)
	line("arguments", "%s", strings.Join(slices.Concat(plan.Args, o.args), " "))
	for _, e := range slices.Concat(plan.Env, o.flags.env) {
		line("variable", "%s", e)
	}
	applies, webhooks := "applies", "webhooks"
	if o.cluster != nil {
		webhooks = "leaves out"
		if !o.cluster.install {
			applies = "needs"
		}
	}
	describeObjects(line, applies, plan)
	for _, u := range plan.Webhooks {
		if o.cluster == nil && !o.servesWebhooks() {
			break
		}
		line(webhooks, "%s %s", u.GetKind(), u.GetName())
	}
	describeLeftOut(line, plan)
	for _, s := range o.examples() {
		line("sample", "%s", s.File)
	}
	describeNotes(line, o.notes())
}
