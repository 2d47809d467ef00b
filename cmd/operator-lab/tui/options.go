package tui

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Loop holds and steps the loop that is watched; *taps.Taps is one. Its methods
// are called one after the other, and may take as long as the operator's process
// takes to answer. That they had an effect is read from the journal.
type Loop interface {
	// Pause holds workers before they take a key.
	Pause()
	// Resume lets them go on, and sends held writes.
	Resume()
	// Step lets one worker take one key; it pauses a loop that runs.
	Step()
	// StepCall goes on to the next write and holds it before it is sent.
	StepCall()
}

// Cluster changes objects on behalf of the user. Errors are shown as they are.
type Cluster interface {
	// Get returns an object as YAML that is fit to be edited.
	Get(ctx context.Context, object trace.Ref) ([]byte, error)
	// Update writes what the editor left. It must refuse it if the object has
	// been changed since Get.
	Update(ctx context.Context, yaml []byte) error
	// Create creates the object that the editor or a form left.
	Create(ctx context.Context, yaml []byte) error
	// Fields returns the fields of the spec of a version of a CustomResourceDefinition; none if its schema does not say.
	Fields(ctx context.Context, crd, version string) ([]Field, error)
	// Patch merges a JSON merge patch into an object.
	Patch(ctx context.Context, object trace.Ref, merge []byte) error
	// Delete deletes an object.
	Delete(ctx context.Context, object trace.Ref) error
}

// Controls are the live things behind the screen. Each may be nil; its keys then say why they do nothing.
type Controls struct {
	Loop    Loop
	Cluster Cluster
	// Faults are more ways to break things, for the menu. Default: deleting and changing objects.
	Faults []Fault
	// Samples are objects that can be applied, for a menu of their own. Default: none.
	Samples []Sample
	// Restart ends the operator in order and begins its next life. It returns at once.
	Restart func()
	// Demo is what is played.
	Demo Demo
	// Shell returns the command that is run while the screen steps aside, such as
	// a shell in which kubectl finds the cluster. It may take a moment.
	Shell func() (*exec.Cmd, error)
	// Command returns a command that runs another one in such a shell, and waits until the user has read what it says.
	// Default: the keys for such commands say that there is no shell.
	Command func(command string) (*exec.Cmd, error)
	// Reach is the beginning of the command that reaches the cluster from another terminal, for the help. Default: empty.
	Reach string
	// Sandbox is the name of the sandbox, for commands of the lab that look at it. Default: no such commands are offered.
	Sandbox string
	// Facts is a short text for the header, such as "k8s 1.36". Default: empty.
	Facts string
}

// Demo waits before each of its deeds until it is asked to do it. Its methods return at once.
type Demo interface {
	// Waiting returns what the deed that waits will do; empty if none does.
	Waiting() string
	// Next plays it.
	Next()
	// PlayOn plays it and all that follow.
	PlayOn()
}

// Fault is a way to break something.
type Fault struct {
	// Text names it in the menu, such as "fail its next write".
	Text string
	// More says in a sentence what it will show, and who acts then. Default: empty.
	More string
	// Likely puts it before those that are seldom wanted.
	Likely bool
	// Running says that it needs a program of the operator: it is not offered while there is none.
	Running bool
	// Do brings it about, for the object that was chosen.
	Do func(ctx context.Context, object trace.Ref) error
}

// Sample is a file with objects that can be applied.
type Sample struct {
	// Text names it in the menu, such as "config/samples/cache.yaml".
	Text string
	// Apply applies its objects.
	Apply func(ctx context.Context) error
}

// Step is one step of the boot.
type Step struct {
	// Name identifies the step: one told again with the same name replaces the first.
	Name string
	// Done is true when it is over; until then it is shown as under way.
	Done bool
	// Took is its duration. Default: it is not shown; while it is under way, how long it takes is.
	Took time.Duration
	// Detail is more to say, such as an address. Default: empty.
	Detail string

	began time.Duration // when it was first told of, on the journal's clock
}

// Options are the options of [Run]. Only Journal is required.
type Options struct {
	// Journal is the journal to show.
	Journal *trace.Journal
	// Title is the title of the screen, such as "zundoko / first-song". Default: empty.
	Title string
	// Operator is the operator whose loop is shown until another is chosen. Default: all are shown.
	Operator string
	// Controls are the controls of a cluster that runs already. Default: none, as for a replay.
	Controls Controls
	// Boot starts the cluster while its steps are shown; the Controls it returns
	// replace those above. Its context ends when the user quits; Run does not
	// return before Boot has. If it fails, the screen says so until the user
	// quits, and Run returns the error. Default: nothing is booted.
	Boot func(ctx context.Context, step func(Step)) (Controls, error)
	// Replay says that the journal is a recording. Default: it grows.
	Replay bool
	// Notice is shown until a key is pressed, such as what is missing of a journal. Default: empty.
	Notice string
	// Guide leads through a lesson. Default: the lines at the bottom say why the selected reconcile ran.
	Guide Guide
	// Code returns a file of an operator's source, by the path in the Line of its events. Changed says that the file may not
	// be the one that the operator was built from. Default: no source is shown.
	Code func(operator, file string) (text string, changed bool, err error)
	// Language is the language of all texts. Default: English.
	Language trace.Language
	// ASCII draws with ASCII only; automatic if the locale is not UTF-8 or TERM is linux. Default: false.
	ASCII bool
	// NoColor uses bold and reverse only; automatic with NO_COLOR and TERM=dumb. Default: false.
	NoColor bool
	// ForceColor uses colour whatever the environment says. Default: false.
	ForceColor bool
	// NoMotion freezes ages and clocks. Default: false.
	NoMotion bool
	// Mouse lets the wheel and clicks be used; the terminal's own selection then needs shift. Default: false.
	Mouse bool
	// In and Out are the terminal. Default: standard input and output.
	In  io.Reader
	Out io.Writer
	// Getenv is the environment. Default: os.Getenv.
	Getenv func(string) string
}

// withDefaults returns o with its defaults and what the environment asks for.
func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Journal == nil {
		o.Journal = trace.New(trace.Options{})
	}
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	term := o.Getenv("TERM")
	o.ASCII = o.ASCII || !utf8Locale(o.Getenv) || term == "linux" || term == "dumb"
	o.NoColor = !o.ForceColor && (o.NoColor || o.Getenv("NO_COLOR") != "" || term == "dumb")
	return o
}

// utf8Locale reports whether the locale's characters are UTF-8.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(strings.ReplaceAll(v, "-", ""))
			return strings.Contains(v, "utf8")
		}
	}
	return false
}
