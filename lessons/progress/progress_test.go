package progress

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/lessons/book"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// open opens a file with a fixed clock.
func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return noon }
	return f
}

// lesson returns a lesson with tasks of these IDs.
func lesson(id, digest string, tasks ...string) *book.Lesson {
	l := &book.Lesson{ID: id, Digest: digest}
	for _, task := range tasks {
		l.Tasks = append(l.Tasks, &book.Task{ID: task})
	}
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", FileName)
	f := open(t, path)
	if a, b := f.Last(); a != "" || b != "" || f.Done("run-zundoko", "sing") {
		t.Error("something is done before the beginning")
	}
	must(t, f.SetLast("run-zundoko", "count"))
	must(t, f.Mark("run-zundoko", "sing", "1111"))
	must(t, f.Mark("run-zundoko", "count", "1111"))
	must(t, f.Mark("etcd", "sing", "2222"))
	want := header + `version 1
last run-zundoko count
done run-zundoko sing 2026-03-14T12:00:00Z 1111
done run-zundoko count 2026-03-14T12:00:00Z 1111
done etcd sing 2026-03-14T12:00:00Z 2222
`
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v", info.Mode())
	}

	again := open(t, path)
	if a, b := again.Last(); a != "run-zundoko" || b != "count" {
		t.Errorf("last was %s %s", a, b)
	}
	for _, c := range []struct {
		lesson      *book.Lesson
		done, total int
		changed     bool
	}{
		{lesson("run-zundoko", "1111", "sing", "count", "silence"), 2, 3, false},
		{lesson("run-zundoko", "3333", "count"), 1, 1, true},
		{lesson("run-zundoko", "3333", "silence"), 0, 1, false},
		{lesson("etcd", "2222", "sing"), 1, 1, false},
		{lesson("other", "1111", "sing"), 0, 1, false},
	} {
		if done, total := again.Lesson(c.lesson); done != c.done || total != c.total || again.Changed(c.lesson) != c.changed {
			t.Errorf("%s: %d of %d, changed: %v", c.lesson.ID, done, total, again.Changed(c.lesson))
		}
	}
}

// TestMarkAgain checks that a task done in another version of the lesson is recorded with that version, and that an
// unchanged file is not written.
func TestMarkAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	f := open(t, path)
	must(t, f.Mark("a", "b", "1111"))
	must(t, f.Mark("a", "b", "2222"))
	if f.Changed(lesson("a", "2222", "b")) || strings.Count(contents(t, path), "done a b") != 1 {
		t.Error(contents(t, path))
	}
	must(t, os.Remove(path))
	must(t, f.SetLast("a", "b"))
	written, err := os.Stat(path)
	must(t, err)
	must(t, f.SetLast("a", "b"))
	if again, err := os.Stat(path); err != nil || !os.SameFile(written, again) {
		t.Error("nothing changed, and the file was written")
	}
}

// TestWords checks that words which could not be read back are refused.
func TestWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	f := open(t, path)
	for _, w := range []string{"", " ", "a b", "a\n", "a\nversion 9", "\x00", "\xff", "\u200b", strings.Repeat("a", longestWord+1)} {
		for _, err := range []error{f.Mark(w, "b", "c"), f.Mark("a", w, "c"), f.Mark("a", "b", w), f.SetLast(w, "b"), f.SetLast("a", w)} {
			if err == nil {
				t.Errorf("%q is kept", w)
			}
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was written")
	}
}

// TestDamaged checks that a problem is reported with its line, that valid lines count, and that the file is kept before
// it is replaced.
func TestDamaged(t *testing.T) {
	const good = "done a b 2026-03-14T12:00:00Z 1111\n"
	for name, c := range map[string]struct {
		file, want string
		read       bool
	}{
		"newer":           {"version 2\n" + good, ":1: version 2 is of a newer operator-lab: this one knows version 1", false},
		"no version":      {good, ":1: the version is missing before this line", true},
		"late version":    {good + "version 1\n", ":1: the version is missing before this line", true},
		"only comments":   {"# nothing\n", ":1: the version is missing", false},
		"empty":           {"", ":1: the version is missing", false},
		"not a version":   {"version one\n" + good, `:1: "one" is no version`, false},
		"version 0":       {"version 0\n" + good, `:1: "0" is no version`, false},
		"two versions":    {"version 1 2\n" + good, ":1: a version is one number", false},
		"unknown":         {"version 1\n\n# x\nfinished a b\n" + good, `:4: "finished" is not known`, true},
		"cut":             {"version 1\n" + good + "done a c 2026-", ":3: a line with done has other fields", true},
		"not a time":      {"version 1\ndone a c yesterday 1111\n" + good, `:2: "yesterday" is no time`, true},
		"fields of last":  {"version 1\nlast a\n" + good, ":2: a line with last has other fields", true},
		"not text":        {"version 1\n" + good + "\x7fELF\x02\x01\x00", ":3: damaged: \"\\x7fELF\\x02\\x01\\x00\"", true},
		"zeros":           {strings.Repeat("\x00", 4096), `:1: damaged: "` + strings.Repeat(`\x00`, 40) + `"…`, false},
		"much":            {strings.Repeat("a", longestFile+1), ":1: is larger than 1 MiB", false},
		"the first of it": {"version 1\nx\ny\n" + good, `:2: "x" is not known`, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			must(t, os.WriteFile(path, []byte(c.file), 0o600))
			f, err := Open(path)
			damaged, is := errors.AsType[*Damaged](err)
			if !is || damaged.Error() != path+c.want || damaged.Hint() == "" {
				t.Fatalf("%v, not %s", err, c.want)
			}
			if f.Done("a", "b") != c.read {
				t.Error("it is done:", f.Done("a", "b"))
			}
			if len(kept(t, path)) != 0 || contents(t, path) != c.file {
				t.Error("it was touched by reading it")
			}
			f.now = func() time.Time { return noon }
			must(t, f.Mark("a", "new", "1111"))
			if want := path + ".bak-20260314-120000"; len(kept(t, path)) != 1 || contents(t, want) != c.file {
				t.Errorf("kept are %v", kept(t, path))
			}
			again := open(t, path)
			if !again.Done("a", "new") || again.Done("a", "b") != c.read {
				t.Errorf("now it is\n%s", contents(t, path))
			}
		})
	}
}

// TestDamagedTwice checks that a kept file is not overwritten, and that nothing is kept without a change.
func TestDamagedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	for i, want := range []string{".bak-20260314-120000", ".bak-20260314-120000-2", ".bak-20260314-120000-3"} {
		damaged := fmt.Sprintf("version 1\nlast a b\ndamaged %d\n", i)
		must(t, os.WriteFile(path, []byte(damaged), 0o600))
		f, _ := Open(path)
		f.now = func() time.Time { return noon }
		must(t, f.SetLast("a", "b"))
		if len(kept(t, path)) != i {
			t.Error("nothing was to be written")
		}
		must(t, f.SetLast("a", "c"))
		if len(kept(t, path)) != i+1 || contents(t, path+want) != damaged {
			t.Errorf("kept are %v", kept(t, path))
		}
	}
}

// kept returns the kept copies of a damaged file.
func kept(t *testing.T, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".bak-*")
	must(t, err)
	return found
}

// TestUnreadable checks that an unreadable file is an error and is not treated as damaged.
func TestUnreadable(t *testing.T) {
	folder := t.TempDir()
	_, err := Open(folder)
	if _, damaged := errors.AsType[*Damaged](err); err == nil || damaged {
		t.Errorf("a folder is read as a file: %v", err)
	}
	f := open(t, filepath.Join(folder, "file", FileName))
	must(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
	if err := f.Mark("a", "b", "c"); err == nil {
		t.Error("a file is written where there can be none")
	}
}

// TestTwoFiles checks that two open files do not undo each other's changes.
func TestTwoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	one, two := open(t, path), open(t, path)
	must(t, one.Mark("a", "b", "1111"))
	must(t, two.Mark("c", "d", "1111"))
	must(t, one.SetLast("a", "b"))
	if !one.Done("c", "d") || !open(t, path).Done("a", "b") {
		t.Error(contents(t, path))
	}
}

// TestProcesses checks that concurrent processes lose nothing, and that a killed one leaves a readable file.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	const processes, each = 4, 25
	var all []*exec.Cmd
	for i := range processes {
		all = append(all, writer(t, path, fmt.Sprint("p", i), each))
	}
	endless := writer(t, path, "endless", 1<<20)
	for _, cmd := range all {
		must(t, cmd.Wait())
	}
	must(t, endless.Process.Kill())
	_ = endless.Wait() // it was killed
	f := open(t, path)
	for i := range processes {
		for k := range each {
			if !f.Done(fmt.Sprint("p", i), fmt.Sprint("t", k)) {
				t.Errorf("p%d t%d is lost", i, k)
			}
		}
	}
	must(t, f.Mark("after", "it", "1111")) // the lock ended with the process
}

const (
	writerPath   = "PROGRESS_TEST_PATH"
	writerLesson = "PROGRESS_TEST_LESSON"
	writerTasks  = "PROGRESS_TEST_TASKS"
)

// writer starts a process that marks tasks of a lesson as done.
func writer(t *testing.T, path, lesson string, tasks int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriter$")
	cmd.Env = append(os.Environ(), writerPath+"="+path, writerLesson+"="+lesson, fmt.Sprintf("%s=%d", writerTasks, tasks))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out.String())
		}
	})
	must(t, cmd.Start())
	return cmd
}

// TestWriter is the code of such a process.
func TestWriter(t *testing.T) {
	path := os.Getenv(writerPath)
	if path == "" {
		t.Skip("only for TestProcesses")
	}
	var tasks int
	if _, err := fmt.Sscan(os.Getenv(writerTasks), &tasks); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	for k := range tasks {
		must(t, f.Mark(os.Getenv(writerLesson), fmt.Sprint("t", k), "1111"))
	}
}

// FuzzParse checks that parsed content is the same after writing and parsing it again, and that nothing is silently
// left out.
func FuzzParse(f *testing.F) {
	f.Add([]byte(header + "version 1\nlast a b\ndone a b 2026-03-14T12:00:00Z 1111\n"))
	for _, s := range []string{"", "version 2\n", "version 1\ndone a b", "version 1\r\nlast a b\r\n", "\x00", "version 1\ndone a b 2026-03-14T12:00:00+09:00 1\ndone a b 0000-01-01T00:00:00Z 2\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, wrong := parse(data)
		if wrong != nil && (wrong.Line < 1 || wrong.Line > 1+bytes.Count(data, []byte("\n")) || wrong.Reason == "") {
			t.Fatalf("%+v", wrong)
		}
		again, err := parse(n.write())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, n.write())
		}
		if diff := cmp.Diff(n, again, cmp.AllowUnexported(notes{}, note{})); diff != "" {
			t.Fatal(diff)
		}
		if wrong != nil {
			return
		}
		lines := 0
		for l := range strings.SplitSeq(string(data), "\n") {
			if strings.HasPrefix(strings.TrimSpace(l), "done") {
				lines++
			}
		}
		if len(n.done) > lines || lines > 0 && len(n.done) == 0 {
			t.Fatalf("%d of %d lines", len(n.done), lines)
		}
	})
}
