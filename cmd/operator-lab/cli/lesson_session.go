package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/progress"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// session is a learner at work: one lesson after another, each in a sandbox of its own.
type session struct {
	io       streams
	look     lookFlags
	course   *course
	progress *progress.File
	state    string // directory

	// acting is held while the lesson is taken back or goes on: another terminal may ask for that too.
	acting sync.Mutex
	closed bool               // then neither is done any more
	cancel context.CancelFunc // of who watches the room
	watch  sync.WaitGroup

	mu     sync.Mutex
	room   *lessonRoom   // nil while the next one boots
	wanted *book.Lesson  // the lesson that is, or is to be, in the room
	failed error         // why it could not be opened; nil while it boots
	moved  int64         // how often the room or its journal was another one, or it failed
	move   chan struct{} // closed at the next time
	// remote lets other terminals take part; nil if there is none.
	remote *lessonServer
}

// newSession reads how far the learner is.
func newSession(io streams, look lookFlags, c *course) (*session, error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, err
	}
	s := &session{io: io, look: look, course: c, state: state, move: make(chan struct{})}
	s.progress, err = openProgress(io, state)
	return s, err
}

// openProgress reads the state file. One that cannot be read is said, and kept: the learner goes on without it.
func openProgress(io streams, state string) (*progress.File, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	file, err := progress.Open(filepath.Join(state, progress.FileName))
	if damaged, is := errors.AsType[*progress.Damaged](err); is {
		fmt.Fprintf(io.err, "warning: %s\nhint: %s\n", damaged, damaged.Hint())
		return file, nil
	}
	return file, err
}

func (s *session) language() book.Language { return lessonLanguage(s.look) }

// lessonLanguage is that of the texts of lessons.
func lessonLanguage(look lookFlags) book.Language {
	if look.language() == trace.Japanese {
		return book.Japanese
	}
	return book.English
}

// t chooses between the languages.
func (s *session) t(english, japanese string) string {
	if s.language() == book.Japanese {
		return japanese
	}
	return english
}

// opening is how a lesson is opened: who is told of the boot and of what comes after it, and where the loop is written
// down at the beginning; nil: in a new journal.
type opening struct {
	step    func(sandbox.Step)
	say     func(string)
	journal *trace.Journal
}

// begin opens the first lesson.
func (s *session) begin(ctx context.Context, lesson *book.Lesson, o opening) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	var once sync.Once
	step := o.step
	o.step = func(done sandbox.Step) {
		once.Do(func() { forgetAddress(s.state) }) // now the name is this session's: the file can only be left of a crash
		step(done)
	}
	return s.open(ctx, lesson, o)
}

// open leaves the lesson there is, and opens another one. That the old one does not end well does not keep the learner
// from the new one: it is said. Whoever opens holds acting.
func (s *session) open(ctx context.Context, lesson *book.Lesson, o opening) error {
	s.want(lesson, nil)
	left := s.leave(ctx)
	if left != nil {
		left = fmt.Errorf("%s: %w", s.t("the lesson before did not end well", "前のレッスンを正常に終了できませんでした"), left)
	}
	if err := s.openRoom(ctx, lesson, o); err != nil {
		s.want(lesson, err)
		s.enter(nil)
		return errors.Join(err, left)
	}
	return left
}

// openRoom boots the sandbox of a lesson, and begins with it.
func (s *session) openRoom(ctx context.Context, lesson *book.Lesson, o opening) (err error) {
	room, err := openLessonRoom(ctx, s.io, lesson, lessonRoomOptions{name: lessonSandbox, progress: o.step, journal: o.journal})
	if err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			cancel()
			err = errors.Join(err, room.close(ctx))
		}
	}()
	if err := room.teach(watching, tutor.Options{
		Next: s.course.After(lesson), Language: s.language(), Progress: s.progress, Dir: s.dir(lesson), Say: o.say,
	}); err != nil {
		return err
	}
	if err := room.tutor.Begin(ctx); err != nil {
		return err
	}
	s.cancel = cancel
	s.watch.Go(func() { room.tutor.Watch(watching) })
	s.enter(room)
	if s.remote == nil {
		s.remote = s.serveOthers(ctx)
	}
	return nil
}

// want notes which lesson is to be opened, and why it could not be.
func (s *session) want(lesson *book.Lesson, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.failed = lesson, failed
}

// pending is the lesson that is to be opened, and why it could not be; nil while it boots.
func (s *session) pending() (lesson *book.Lesson, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted, s.failed
}

// enter says that the lesson goes on in a room, or in the same one with another journal; nil: it is just between two.
func (s *session) enter(room *lessonRoom) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room = room
	s.moved++
	close(s.move)
	s.move = make(chan struct{})
}

// here is the room there is, how many there were, and a channel that is closed when there is another one.
func (s *session) here() (room *lessonRoom, moved int64, move <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room, s.moved, s.move
}

// dir is where the learner has the manifests of a lesson.
func (s *session) dir(lesson *book.Lesson) string {
	return filepath.Join(s.state, "lessons", lesson.ID)
}

// leave ends the lesson there is.
func (s *session) leave(ctx context.Context) error {
	if s.cancel != nil {
		s.cancel()
		s.watch.Wait()
		s.cancel = nil
	}
	room, _, _ := s.here()
	if room == nil {
		return nil
	}
	s.enter(nil)
	return room.close(ctx)
}

// close ends everything. What another terminal has asked for is given up first: no sandbox comes up that nobody stops.
func (s *session) close(ctx context.Context) error {
	if s.remote != nil {
		s.remote.close()
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	s.closed = true
	return s.leave(ctx)
}

// tutor of the lesson under way; nil while there is none.
func (s *session) tutor() *tutor.Tutor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room == nil {
		return nil
	}
	return s.room.tutor
}

// undo brings the cluster back to the start of the task.
func (s *session) undo(ctx context.Context) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	room, _, _ := s.here()
	if room == nil || s.closed {
		return s.between()
	}
	_, err := room.tutor.Undo(ctx)
	if err == nil { // what kubectl remembers of the kinds there are may be of later
		err = os.RemoveAll(sandbox.KubectlCache(room.sandbox.Dir()))
	}
	s.enter(room)
	return err
}

// between is what is said while one lesson is over and the next has not begun.
func (s *session) between() error {
	lesson, failed := s.pending()
	if failed == nil {
		return &sandbox.Problem{
			Err:  errors.New(s.t("the next lesson is just starting", "次のレッスンを起動中です")),
			Hint: s.t("wait a moment", "少しお待ちください"),
		}
	}
	why := strings.ReplaceAll(failed.Error(), "\n", "; ")
	hint := s.t("'next' tries again, 'quit' leaves; on the screen n and q do", "next で再試行、quit で終了します (画面では n と q)")
	if first := sandbox.HintOf(failed); first != "" {
		hint = first + "; " + hint
	}
	return &sandbox.Problem{
		Err:  fmt.Errorf(s.t("the lesson %q could not be opened: %s", "レッスン「%s」を開けませんでした: %s"), lesson.Title(s.language()), why),
		Hint: hint,
	}
}

// stuck says whether the next lesson could not be opened: it can be tried again.
func (s *session) stuck() bool {
	_, failed := s.pending()
	return failed != nil
}

// errBookOver says that there is no further lesson.
var errBookOver = errors.New("this was the last lesson")

// bookOver says the same to the learner.
func (s *session) bookOver() string {
	return s.t("This was the last lesson. Well done!", "これが最後のレッスンでした。お疲れさまでした!")
}

// next goes on to the next task, or the next lesson; to the same one again if it could not be opened.
func (s *session) next(ctx context.Context, o opening) error {
	if s.tutor() == nil && !s.stuck() {
		return s.between()
	}
	s.acting.Lock()
	defer s.acting.Unlock()
	if s.closed {
		return s.between()
	}
	lesson, err := s.following(ctx)
	if err != nil || lesson == nil {
		return err
	}
	if err = s.open(ctx, lesson, o); s.stuck() {
		return s.between()
	}
	return err
}

// following is the lesson to be opened next; nil if the one there is goes on with another task.
func (s *session) following(ctx context.Context) (*book.Lesson, error) {
	t := s.tutor()
	if t == nil {
		lesson, _ := s.pending()
		return lesson, nil
	}
	if err := t.Next(ctx); !errors.Is(err, tutor.ErrLessonOver) {
		return nil, err
	}
	if next := s.course.After(t.Lesson()); next != nil {
		return next, nil
	}
	return nil, errBookOver
}

// controls are what the screen acts on.
func (s *session) controls() (tui.Controls, error) {
	room, _, _ := s.here()
	if room == nil {
		return tui.Controls{}, s.between()
	}
	scheme, err := personScheme(bundledOperators(room.lesson)...)
	if err != nil {
		return tui.Controls{}, err
	}
	you, err := personIn(room.sandbox, room.lab.Journal(), scheme)
	if err != nil {
		return tui.Controls{}, err
	}
	c := tui.Controls{
		Cluster: hands{you}, Shell: s.greetedShell,
		Facts: "k8s " + dependency("k8s.io/kubernetes"),
	}
	operator := ""
	if len(room.lesson.Operators) > 0 {
		operator = room.lesson.Operators[0].Name
		if loop := room.lab.Taps(operator); loop != nil {
			c.Loop = loop
		}
	}
	c.Faults = breaks(you, operator, s.look.language(), room.lesson.Nodes > 0)
	return c, nil
}

// shell is the learner's shell, in the lesson's directory, where kubectl finds the cluster.
func (s *session) shell() (*exec.Cmd, error) {
	at := s.place()
	if at.Kubeconfig == "" {
		return nil, s.between()
	}
	return lessonShell(at)
}

// greetedShell is the same for a person, who cannot see the task meanwhile: it is printed first.
func (s *session) greetedShell() (*exec.Cmd, error) {
	cmd, err := s.shell()
	if err != nil {
		return nil, err
	}
	t := s.tutor()
	if t == nil {
		return nil, s.between()
	}
	v := t.View()
	text := "\n" + taskNumber(v.Index, v.Tasks, v.TaskTitle) + "\n\n" + tui.Plain(v.Text, plainWidth) + "\n" +
		s.t("(exit goes back to the screen)", "(exit で画面に戻ります)") + "\n"
	greeted := exec.Command("/bin/sh", "-c", `printf '%s\n' "$1"; exec "$2"`, "sh", text, cmd.Path)
	greeted.Dir, greeted.Env = cmd.Dir, cmd.Env
	return greeted, nil
}

// place is where the lesson under way is at home; empty while there is none.
func (s *session) place() lessonPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room == nil {
		return lessonPlace{}
	}
	return lessonPlace{
		Kubeconfig: s.room.sandbox.Kubeconfig(), Proxy: s.room.sandbox.Proxy(), Dir: s.dir(s.room.lesson), Cache: s.room.sandbox.Dir(),
	}
}

// lessonPlace is where a learner's shell is at home.
type lessonPlace struct {
	Kubeconfig string `json:"kubeconfig"`
	Proxy      string `json:"proxy,omitempty"`
	Dir        string `json:"dir"`
	Cache      string `json:"cache"`
}

// lessonShell is a shell in which kubectl, etcdctl and curl find the cluster of the lesson.
func lessonShell(at lessonPlace) (*exec.Cmd, error) {
	kubectl, err := ownKubectl()
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	cmd := exec.Command(shell)
	cmd.Dir = at.Dir
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(kubectl)+string(os.PathListSeparator)+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+at.Kubeconfig, "OPERATOR_LAB_LESSON=1",
	)
	cmd.Env = append(cmd.Env, sandbox.Environment(at.Cache, at.Proxy)...)
	return cmd, nil
}
