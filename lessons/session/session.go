// Package session runs lessons for a learner, one after the other, each in a sandbox of its own. The screen and the text
// mode read the running lesson and its tutor; other terminals take part through a server on loopback.
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

// Options are the options of [New].
type Options struct {
	// Sandbox holds the binary of the sandboxes and its version. The other fields are set for each lesson.
	Sandbox sandbox.Options
	// State is the state directory.
	State string
	// Kubectl is the path of kubectl; etcdctl is in the same directory.
	Kubectl string
	// After returns the lesson that follows another; nil after the last.
	After func(*book.Lesson) *book.Lesson
	// Language is the language of the learner's texts. Default: English.
	Language book.Language
	// Progress records which tasks were done. Default: nothing is recorded.
	Progress *progress.File
}

// Session runs lessons one after the other. All methods but [Session.Begin] and [Session.Close] may be called from any
// goroutine.
type Session struct {
	options Options

	// acting is held during an undo and while the next task or lesson begins: other terminals may request these too.
	acting sync.Mutex
	closed bool               // then there is neither any more
	cancel context.CancelFunc // ends the watch of the tutor
	watch  sync.WaitGroup

	mu      sync.Mutex
	running *Running     // nil while the next lesson boots
	wanted  *book.Lesson // the lesson that runs or boots
	failed  error        // why wanted could not be opened; nil while it boots
	moved   int64        // counts changes of running, and its undos
	review  *tutor.Review
	move    chan struct{} // closed and replaced when moved grows
	// remote lets other terminals take part; nil if there is none.
	remote *server
}

// New returns a session without a running lesson.
func New(o Options) *Session {
	return &Session{options: o, move: make(chan struct{}), review: tutor.NewReview()}
}

// Text returns one of two texts, by the learner's language.
func (s *Session) Text(english, japanese string) string {
	return s.options.Language.Choose(english, japanese)
}

// Opening holds the options for opening a lesson.
type Opening struct {
	// Step is called after each step of the boot. Default: not called.
	Step func(sandbox.Step)
	// Say gets messages about the progress after the boot, in the learner's language. Default: they are dropped.
	Say func(string)
	// Journal is the lesson's first journal. Default: a new one.
	Journal *trace.Journal
}

// Begin opens the first lesson.
func (s *Session) Begin(ctx context.Context, lesson *book.Lesson, o Opening) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	var once sync.Once
	step := o.Step
	o.Step = func(done sandbox.Step) {
		once.Do(func() { forgetAddress(s.options.State) }) // the sandbox's name is taken now, so the file can only be left from a crash
		if step != nil {
			step(done)
		}
	}
	return s.open(ctx, lesson, o)
}

// open closes the running lesson and opens another one. An error of closing is returned, but does not prevent the other
// lesson from opening. The caller holds acting.
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

// openLesson boots the sandbox of a lesson and begins its first task.
func (s *Session) openLesson(ctx context.Context, lesson *book.Lesson, o Opening) (err error) {
	running, err := s.options.start(ctx, lesson, SandboxName, s.dir(lesson), o, s.tellMoved)
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
	if err := running.teach(watching, s.options.Kubectl, tutor.Options{
		Next: s.options.After(lesson), Language: s.options.Language, Progress: s.options.Progress, Dir: s.dir(lesson), Say: o.Say, Review: s.review,
	}); err != nil {
		return err
	}
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

// want records the lesson to be opened, and why it could not be opened.
func (s *Session) want(lesson *book.Lesson, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.failed = lesson, failed
}

// Pending returns the lesson that runs or boots. The error says why it could not be opened; it is nil while it boots.
func (s *Session) Pending() (lesson *book.Lesson, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted, s.failed
}

// enter records the running lesson, or that it has a new journal; nil: none runs.
func (s *Session) enter(running *Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
	s.moved++
	close(s.move)
	s.move = make(chan struct{})
}

// tellMoved has the running lesson looked at anew: it has an operator now.
func (s *Session) tellMoved() {
	s.acting.Lock()
	defer s.acting.Unlock()
	if running, _, _ := s.Current(); running != nil {
		s.enter(running)
	}
}

// Current returns the running lesson, or nil between two, a number that grows when the lesson or its journal changes, and
// a channel that is closed then.
func (s *Session) Current() (running *Running, moved int64, move <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.moved, s.move
}

// dir returns the learner's directory for the manifests of a lesson.
func (s *Session) dir(lesson *book.Lesson) string {
	return filepath.Join(s.options.State, "lessons", lesson.ID)
}

// leave closes the running lesson, if there is one.
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

// Close closes the running lesson and the server for other terminals. It cancels their requests first, so that no sandbox
// is started afterwards.
func (s *Session) Close(ctx context.Context) error {
	if s.remote != nil {
		s.remote.close()
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	s.closed = true
	return s.leave(ctx)
}

// Tutor returns the tutor of the running lesson; nil while none runs.
func (s *Session) Tutor() *tutor.Tutor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil
	}
	return s.running.Tutor
}

// Undo restores the cluster to the start of the task.
func (s *Session) Undo(ctx context.Context) error { return s.restore(ctx, (*tutor.Tutor).Undo) }

// Back restores the cluster to the start of the task before, which is to be done again.
func (s *Session) Back(ctx context.Context) error { return s.restore(ctx, (*tutor.Tutor).Back) }

func (s *Session) restore(ctx context.Context, do func(*tutor.Tutor, context.Context) (*trace.Journal, error)) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	running, _, _ := s.Current()
	if running == nil || s.closed {
		return s.Between()
	}
	_, err := do(running.Tutor, ctx)
	if err == nil { // kubectl's cache of the served kinds may be newer than the restored cluster
		err = os.RemoveAll(sandbox.KubectlCache(running.Sandbox.Dir()))
	}
	s.enter(running)
	return err
}

// Between returns the error for requests while no lesson runs: the next one boots, or could not be opened.
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

// Stuck reports whether the next lesson could not be opened. [Session.Next] tries again.
func (s *Session) Stuck() bool {
	_, failed := s.Pending()
	return failed != nil
}

// ErrBookOver is returned by [Session.Next] after the last lesson.
var ErrBookOver = errors.New("this was the last lesson")

// BookOver returns the text for a learner who has done the last lesson.
func (s *Session) BookOver() string {
	return s.Text("This was the last lesson. Well done!", "これが最後のレッスンでした。お疲れさまでした!")
}

// Next begins the next task, or opens the next lesson. A lesson that could not be opened is opened again.
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

// following returns the lesson to be opened next; nil if the next task of the running lesson has begun.
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

// Shell returns the learner's shell: it starts in the lesson's directory, and kubectl uses the lesson's cluster.
func (s *Session) Shell() (*exec.Cmd, error) {
	at := s.Place()
	if at.Kubeconfig == "" {
		return nil, s.Between()
	}
	return at.Shell(s.options.Kubectl)
}

// Place returns the settings of a shell for the running lesson; empty while none runs.
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

// Place holds the settings of a shell for a sandbox: a learner's, or that of somebody who watches an operator.
type Place struct {
	// Kubeconfig is the path of the sandbox's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Proxy is the URL of the HTTP proxy that resolves the cluster's names.
	Proxy string `json:"proxy,omitempty"`
	// Dir is the directory in which the shell starts, that with the manifests of the lesson. Default: the working directory.
	Dir string `json:"dir"`
	// Cache is the directory of the sandbox, which holds kubectl's cache.
	Cache string `json:"cache"`
}

// Shell returns a shell in which kubectl, etcdctl and curl use the sandbox. kubectl is the path of kubectl; etcdctl
// is in the same directory.
func (at Place) Shell(kubectl string) (*exec.Cmd, error) {
	path, err := searchPath(kubectl)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(cmp.Or(os.Getenv("SHELL"), "sh"))
	cmd.Dir = at.Dir
	cmd.Env = append(os.Environ(), path, "KUBECONFIG="+at.Kubeconfig)
	cmd.Env = append(cmd.Env, sandbox.Environment(at.Cache, at.Proxy)...)
	return cmd, nil
}

// searchPath returns the variable PATH with kubectl, etcdctl and this program in it.
func searchPath(kubectl string) (string, error) {
	binary, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := []string{filepath.Dir(kubectl), filepath.Dir(binary), os.Getenv("PATH")}
	return "PATH=" + strings.Join(path, string(os.PathListSeparator)), nil
}
