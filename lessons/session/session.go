// Package session holds lessons for a learner, one after the other, each in a sandbox of its own. Whoever shows them, on the
// screen or as text, reads the lesson under way and its tutor; other terminals take part through a server on loopback.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/progress"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Options of a [Session].
type Options struct {
	// Sandbox says which binary sandboxes run, and its version. The rest of it is set for each lesson.
	Sandbox sandbox.Options
	// State is the state directory.
	State string
	// Kubectl is the path of kubectl; etcdctl is in the same directory.
	Kubectl string
	// After returns the lesson that follows another; nil after the last.
	After func(*book.Lesson) *book.Lesson
	// Language of what the learner reads. Default: English.
	Language book.Language
	// Progress remembers which tasks were done. Default: nothing does.
	Progress *progress.File
}

// Session is a learner's way through lessons. All methods but [Session.Begin] and [Session.Close] may be called from any
// goroutine.
type Session struct {
	options Options

	// acting is held while the lesson is taken back or goes on: another terminal may ask for that too.
	acting sync.Mutex
	closed bool               // then neither is done any more
	cancel context.CancelFunc // ends the watch of the tutor
	watch  sync.WaitGroup

	mu      sync.Mutex
	running *Running      // nil while the next one boots
	wanted  *book.Lesson  // the lesson that is, or is to be, under way
	failed  error         // why it could not be opened; nil while it boots
	moved   int64         // how often the lesson or its journal was another one, or it failed
	move    chan struct{} // closed at the next time
	// remote lets other terminals take part; nil if there is none.
	remote *server
}

// New returns a session in which no lesson is under way yet.
func New(o Options) *Session { return &Session{options: o, move: make(chan struct{})} }

// Text returns one of two texts, in the learner's language.
func (s *Session) Text(english, japanese string) string {
	if s.options.Language == book.Japanese {
		return japanese
	}
	return english
}

// Opening says who is told while a lesson is opened.
type Opening struct {
	// Step is told of each step of the boot. Default: nobody is.
	Step func(sandbox.Step)
	// Say is told what is going on after the boot, in the learner's language. Default: nobody is.
	Say func(string)
	// Journal of the beginning. Default: a new one.
	Journal *trace.Journal
}

// Begin opens the first lesson.
func (s *Session) Begin(ctx context.Context, lesson *book.Lesson, o Opening) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	var once sync.Once
	step := o.Step
	o.Step = func(done sandbox.Step) {
		once.Do(func() { forgetAddress(s.options.State) }) // now the name is this session's: the file can only be left of a crash
		if step != nil {
			step(done)
		}
	}
	return s.open(ctx, lesson, o)
}

// open leaves the lesson there is, and opens another one. That the old one does not end well does not keep the learner
// from the new one: it is said. Whoever opens holds acting.
func (s *Session) open(ctx context.Context, lesson *book.Lesson, o Opening) error {
	s.want(lesson, nil)
	left := s.leave(ctx)
	if left != nil {
		left = fmt.Errorf("%s: %w", s.Text("the lesson before did not end well", "前のレッスンを正常に終了できませんでした"), left)
	}
	if err := s.openLesson(ctx, lesson, o); err != nil {
		s.want(lesson, err)
		s.enter(nil)
		return errors.Join(err, left)
	}
	return left
}

// openLesson boots the sandbox of a lesson, and begins with it.
func (s *Session) openLesson(ctx context.Context, lesson *book.Lesson, o Opening) (err error) {
	running, err := s.options.start(ctx, lesson, SandboxName, o)
	if err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			cancel()
			err = errors.Join(err, running.close(ctx))
		}
	}()
	running.teach(watching, s.options.Kubectl, tutor.Options{
		Next: s.options.After(lesson), Language: s.options.Language, Progress: s.options.Progress, Dir: s.dir(lesson), Say: o.Say,
	})
	if err := running.Tutor.Begin(ctx); err != nil {
		return err
	}
	s.cancel = cancel
	s.watch.Go(func() { running.Tutor.Watch(watching) })
	s.enter(running)
	if s.remote == nil {
		s.remote = s.serveOthers(ctx)
	}
	return nil
}

// want notes which lesson is to be opened, and why it could not be.
func (s *Session) want(lesson *book.Lesson, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.failed = lesson, failed
}

// Pending returns the lesson that is to be opened, and why it could not be; nil while it boots.
func (s *Session) Pending() (lesson *book.Lesson, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted, s.failed
}

// enter notes which lesson is under way, or that it has another journal; nil: it is just between two.
func (s *Session) enter(running *Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
	s.moved++
	close(s.move)
	s.move = make(chan struct{})
}

// Current returns the lesson under way, nil between two, how often it was another one, and a channel that is closed when it is
// another one.
func (s *Session) Current() (running *Running, moved int64, move <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.moved, s.move
}

// dir returns the directory in which the learner has the manifests of a lesson.
func (s *Session) dir(lesson *book.Lesson) string {
	return filepath.Join(s.options.State, "lessons", lesson.ID)
}

// leave ends the lesson there is.
func (s *Session) leave(ctx context.Context) error {
	if s.cancel != nil {
		s.cancel()
		s.watch.Wait()
		s.cancel = nil
	}
	running, _, _ := s.Current()
	if running == nil {
		return nil
	}
	s.enter(nil)
	return running.close(ctx)
}

// Close ends the lesson under way and the server for other terminals. What another terminal has asked for is given up first, so
// that no sandbox comes up afterwards.
func (s *Session) Close(ctx context.Context) error {
	if s.remote != nil {
		s.remote.close()
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	s.closed = true
	return s.leave(ctx)
}

// Tutor returns the tutor of the lesson under way; nil while there is none.
func (s *Session) Tutor() *tutor.Tutor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil
	}
	return s.running.Tutor
}

// Undo brings the cluster back to the start of the task.
func (s *Session) Undo(ctx context.Context) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	running, _, _ := s.Current()
	if running == nil || s.closed {
		return s.Between()
	}
	_, err := running.Tutor.Undo(ctx)
	if err == nil { // what kubectl remembers of the kinds there are may be of later
		err = os.RemoveAll(sandbox.KubectlCache(running.Sandbox.Dir()))
	}
	s.enter(running)
	return err
}

// Between returns the error of what cannot be done because one lesson is over and the next has not begun.
func (s *Session) Between() error {
	lesson, failed := s.Pending()
	if failed == nil {
		return &sandbox.Problem{
			Err:  errors.New(s.Text("the next lesson is just starting", "次のレッスンを起動中です")),
			Hint: s.Text("wait a moment", "少しお待ちください"),
		}
	}
	why := strings.ReplaceAll(failed.Error(), "\n", "; ")
	hint := s.Text("'next' tries again, 'quit' leaves; on the screen n and q do", "next で再試行、quit で終了します (画面では n と q)")
	if first := sandbox.HintOf(failed); first != "" {
		hint = first + "; " + hint
	}
	return &sandbox.Problem{
		Err:  fmt.Errorf(s.Text("the lesson %q could not be opened: %s", "レッスン「%s」を開けませんでした: %s"), lesson.Title(s.options.Language), why),
		Hint: hint,
	}
}

// Stuck says whether the next lesson could not be opened: it can be tried again.
func (s *Session) Stuck() bool {
	_, failed := s.Pending()
	return failed != nil
}

// ErrBookOver says that there is no further lesson.
var ErrBookOver = errors.New("this was the last lesson")

// BookOver says that there is no further lesson to the learner.
func (s *Session) BookOver() string {
	return s.Text("This was the last lesson. Well done!", "これが最後のレッスンでした。お疲れさまでした!")
}

// Next goes on to the next task, or the next lesson; to the same one again if it could not be opened.
func (s *Session) Next(ctx context.Context, o Opening) error {
	if s.Tutor() == nil && !s.Stuck() {
		return s.Between()
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	if s.closed {
		return s.Between()
	}
	lesson, err := s.following(ctx)
	if err != nil || lesson == nil {
		return err
	}
	if err = s.open(ctx, lesson, o); s.Stuck() {
		return s.Between()
	}
	return err
}

// following is the lesson to be opened next; nil if the one there is goes on with another task.
func (s *Session) following(ctx context.Context) (*book.Lesson, error) {
	t := s.Tutor()
	if t == nil {
		lesson, _ := s.Pending()
		return lesson, nil
	}
	if err := t.Next(ctx); !errors.Is(err, tutor.ErrLessonOver) {
		return nil, err
	}
	if next := s.options.After(t.Lesson()); next != nil {
		return next, nil
	}
	return nil, ErrBookOver
}

// Shell returns the learner's shell, in the lesson's directory, where kubectl finds the cluster.
func (s *Session) Shell() (*exec.Cmd, error) {
	at := s.Place()
	if at.Kubeconfig == "" {
		return nil, s.Between()
	}
	return at.Shell(s.options.Kubectl)
}

// Place returns where the lesson under way is at home; empty while there is none.
func (s *Session) Place() Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return Place{}
	}
	return Place{
		Kubeconfig: s.running.Sandbox.Kubeconfig(), Proxy: s.running.Sandbox.Proxy(), Dir: s.dir(s.running.Lesson), Cache: s.running.Sandbox.Dir(),
	}
}

// Place is where a learner's shell begins.
type Place struct {
	// Kubeconfig is the path of that of the lesson's sandbox.
	Kubeconfig string `json:"kubeconfig"`
	// Proxy is the URL of the proxy that knows the cluster's names.
	Proxy string `json:"proxy,omitempty"`
	// Dir has the manifests of the lesson.
	Dir string `json:"dir"`
	// Cache is the directory of the sandbox.
	Cache string `json:"cache"`
}

// Shell returns a shell in which kubectl, which is at the given path, etcdctl and curl find the cluster of the lesson.
func (at Place) Shell(kubectl string) (*exec.Cmd, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(cmp.Or(os.Getenv("SHELL"), "/bin/sh"))
	cmd.Dir = at.Dir
	path := []string{filepath.Dir(kubectl), filepath.Dir(binary), os.Getenv("PATH")}
	cmd.Env = append(os.Environ(),
		"PATH="+strings.Join(path, string(os.PathListSeparator)), "KUBECONFIG="+at.Kubeconfig, "OPERATOR_LAB_LESSON=1")
	cmd.Env = append(cmd.Env, sandbox.Environment(at.Cache, at.Proxy)...)
	return cmd, nil
}
