package session

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/lessons"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/sandbox"
)

// TestBetweenLessons checks what a session without a lesson under way says: nothing of it needs a cluster.
func TestBetweenLessons(t *testing.T) {
	for _, test := range []struct {
		name     string
		language book.Language
		failed   error
		stuck    bool
		want     string
		hint     string
	}{
		{"booting", book.English, nil, false, "the next lesson is just starting", "wait a moment"},
		{"booting, in Japanese", book.Japanese, nil, false, "次のレッスンを起動中です", "少しお待ちください"},
		{
			"failed", book.English, &sandbox.Problem{Err: errors.New("no\nport"), Hint: "free one"}, true,
			`the lesson "Run zundoko" could not be opened: no; port`, "free one; 'next' tries again, 'quit' leaves; on the screen n and q do",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(Options{State: t.TempDir(), Language: test.language})
			s.want(lesson(t), test.failed)
			if got := s.Stuck(); got != test.stuck {
				t.Errorf("Stuck() = %v, want %v", got, test.stuck)
			}
			said := []string{}
			for _, err := range []error{s.Between(), s.Undo(t.Context())} {
				said = append(said, err.Error(), sandbox.HintOf(err))
			}
			if diff := cmp.Diff([]string{test.want, test.hint, test.want, test.hint}, said); diff != "" {
				t.Error(diff)
			}
			if s.Tutor() != nil || s.Place() != (Place{}) {
				t.Error("there is a lesson under way")
			}
		})
	}
}

func lesson(t *testing.T) *book.Lesson {
	t.Helper()
	b, err := book.Open(lessons.Bundled())
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Find("run-zundoko")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLessonThatIsWrong checks that a lesson with an operator that does not exist boots nothing, and is told as the lesson's mistake.
func TestLessonThatIsWrong(t *testing.T) {
	s := New(Options{State: t.TempDir()})
	wrong := *lesson(t)
	wrong.Operators = []book.Operator{{Name: "nobody"}}
	err := s.Begin(t.Context(), &wrong, Opening{})
	if !errors.Is(err, ErrLesson) || errors.Is(err, ErrSandbox) {
		t.Errorf("it is not an error of the lesson: %v", err)
	}
	if want := `there is no bundled operator "nobody"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !s.Stuck() {
		t.Error("it is not said that the lesson could not be opened")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// served returns a session that other terminals reach, and how.
func served(t *testing.T) (*server, *Remote) {
	t.Helper()
	state := t.TempDir()
	server := New(Options{State: state}).serveOthers(t.Context())
	if server == nil {
		t.Fatal("it is not served")
	}
	t.Cleanup(server.close)
	at, err := read(state)
	if err != nil {
		t.Fatal(err)
	}
	return server, at
}

func TestOtherTerminals(t *testing.T) {
	server, at := served(t)
	info, err := os.Stat(addressFile(server.session.options.State))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("others can read the token: mode %o", mode)
	}
	for _, what := range []Request{Hint, Check, Solution, Reset, Next, Reply, Where} {
		_, err := at.Ask(t.Context(), what, "")
		if err == nil || err.Error() != "the next lesson is just starting" || sandbox.HintOf(err) != "wait a moment" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if rest, err := filepath.Glob(addressFile(server.session.options.State) + ".*"); err != nil || len(rest) > 0 {
		t.Errorf("%v are left, %v", rest, err)
	}
	server.close()
	if _, err := os.Stat(addressFile(server.session.options.State)); !os.IsNotExist(err) {
		t.Error("the address is still there")
	}
	if _, err := at.Ask(t.Context(), Check, ""); sandbox.HintOf(err) == "" {
		t.Errorf("it is not said what to do when nobody answers: %v", err)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	_, at := served(t)
	for _, test := range []struct {
		name, token, method string
		want                int
	}{
		{"another token", "guessed", http.MethodPost, http.StatusUnauthorized},
		{"no token", "", http.MethodPost, http.StatusUnauthorized},
		{"another method", at.Token, http.MethodGet, http.StatusMethodNotAllowed},
		{"the right token", at.Token, http.MethodPost, http.StatusOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), test.method, at.URL+"/check", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+test.token)
			client := at.client()
			defer client.CloseIdleConnections()
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if response.StatusCode != test.want {
				t.Errorf("got %d, want %d", response.StatusCode, test.want)
			}
		})
	}
}

func TestNoLessonIsFound(t *testing.T) {
	if at, err := Find(t.TempDir()); at != nil || err != nil {
		t.Errorf("got %v, %v", at, err)
	}
}

func TestTextOfOpenError(t *testing.T) {
	err := error(openError{&sandbox.Problem{Err: context.Canceled, Hint: "wait"}, ErrSandbox})
	if err.Error() != context.Canceled.Error() || !errors.Is(err, context.Canceled) || sandbox.HintOf(err) != "wait" {
		t.Errorf("the error behind it is hidden: %v", err)
	}
}
