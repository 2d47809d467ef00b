package sandboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// recorder is a test that notes how it ends.
type recorder struct {
	testing.TB
	ctx      context.Context
	text     string
	skipped  bool
	cleanups []func()
}

func (r *recorder) Helper()                           {}
func (r *recorder) Context() context.Context          { return r.ctx }
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); panic(r) }
func (r *recorder) Fatal(args ...any)                 { r.text += fmt.Sprint(args...); panic(r) }
func (r *recorder) Skip(args ...any)                  { r.skipped = true; r.Fatal(args...) }

// record runs a test to its end.
func record(t *testing.T, test func(testing.TB)) (r *recorder) {
	t.Helper()
	r = &recorder{TB: t, ctx: t.Context()}
	defer func() {
		if ended := recover(); ended != nil && ended != any(r) {
			panic(ended)
		}
		for _, f := range r.cleanups {
			f()
		}
	}()
	test(r)
	return r
}

func TestEventually(t *testing.T) {
	for name, test := range map[string]struct {
		wait func(testing.TB)
		want string
	}{
		"a bool":   {func(tb testing.TB) { n := 0; sandboxtest.Eventually(tb, "w", func() bool { n++; return n == 3 }) }, ""},
		"an error": {func(tb testing.TB) { sandboxtest.Eventually(tb, "w", func() error { return nil }) }, ""},
		"a context": {func(tb testing.TB) {
			sandboxtest.Eventually(tb, "w", func(ctx context.Context) error { return ctx.Err() })
		}, ""},
		"in vain": {func(tb testing.TB) {
			sandboxtest.EventuallyWithin(tb, time.Millisecond, "the world ends", func() error { return errors.New("not yet") })
		}, "not yet"},
	} {
		r := record(t, test.wait)
		if (r.text == "") != (test.want == "") || !strings.Contains(r.text, test.want) {
			t.Errorf("%s: it said %q, want %q", name, r.text, test.want)
		}
	}
}

func TestSharedStartsOnce(t *testing.T) {
	started, stopped := 0, 0
	shared := sandboxtest.Share(func(context.Context) (int, func() error, error) {
		started++
		return 7, func() error { stopped++; return nil }, nil
	})
	if err := shared.Stop(); err != nil || stopped != 0 {
		t.Errorf("it was stopped before it was started: %v", err)
	}
	if a, b := shared.Get(t), shared.Get(t); a != 7 || b != 7 || started != 1 {
		t.Errorf("got %d and %d, started %d times", a, b, started)
	}
	if err := shared.Stop(); err != nil || stopped != 1 {
		t.Errorf("stopped %d times: %v", stopped, err)
	}
}

func TestSharedThatDoesNotStart(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		skipped bool
	}{
		"no binary":      {fmt.Errorf("look: %w", sandbox.ErrNoBinary), true},
		"something else": {errors.New("no disk"), false},
	} {
		shared := sandboxtest.Share(func(context.Context) (int, func() error, error) { return 0, nil, test.err })
		r := record(t, func(tb testing.TB) { shared.Get(tb) })
		if r.skipped != test.skipped || !strings.Contains(r.text, test.err.Error()) {
			t.Errorf("%s: skipped is %t, and it said %q", name, r.skipped, r.text)
		}
	}
}

func TestNoLeaks(t *testing.T) {
	if r := record(t, func(tb testing.TB) {
		sandboxtest.NoLeaks(tb)
		go func() { <-time.After(50 * time.Millisecond) }() // it ends soon
	}); r.text != "" {
		t.Errorf("nothing is left, and it said %q", r.text)
	}
}

func TestWrites(t *testing.T) {
	writes := sandboxtest.NewWrites(func(req *http.Request) string { return strings.TrimPrefix(req.URL.Path, "/") })
	var sent []string
	client := &http.Client{Transport: writes.Wrap(sandboxtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		sent = append(sent, string(body))
		return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody, Request: req}, err
	}))}
	post := func(path, body string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server.invalid/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		return resp.StatusCode
	}
	var before []string
	writes.BeforeEach(func(write string) { before = append(before, write) })
	writes.FailOnce("two")
	for i, want := range []int{http.StatusCreated, http.StatusInternalServerError, http.StatusCreated, http.StatusCreated} {
		if got := post([]string{"pods", "pods", "pods", ""}[i], []string{"one", "two", "two", "not described"}[i]); got != want {
			t.Errorf("write %d: the status is %d, want %d", i, got, want)
		}
	}
	if want := []string{"one", "two", "not described"}; !slices.Equal(sent, want) {
		t.Errorf("the server got %q, want %q", sent, want)
	}
	if n := writes.Count("POST pods Created"); n != 2 || len(writes.All()) != 1 || len(before) != 3 || !writes.Failed() {
		t.Errorf("counted %v, told of %v before, failed: %t", writes.All(), before, writes.Failed())
	}
}
