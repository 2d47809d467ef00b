package book

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// shelf returns a file system with starter lessons in folders of these names.
func shelf(tb testing.TB, names ...string) fstest.MapFS {
	tb.Helper()
	out := fstest.MapFS{}
	for _, name := range names {
		number, id, ok := split(name)
		if !ok {
			tb.Fatalf("%q is no name of a lesson", name)
		}
		folder, files := Starter(StarterOptions{Number: number, ID: id, Operator: "zundoko"})
		for file, text := range files {
			out[folder+"/"+file] = &fstest.MapFile{Data: text}
		}
	}
	return out
}

// onDisk writes a file system into a folder.
func onDisk(t *testing.T, files fstest.MapFS) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, files); err != nil {
		t.Fatal(err)
	}
	return folder
}

func namesOf(lessons []*Lesson) []string {
	var out []string
	for _, l := range lessons {
		out = append(out, l.Name())
	}
	return out
}

func TestOpen(t *testing.T) {
	files := shelf(t, "12-later", "02-sooner")
	files["README.md"] = &fstest.MapFile{Data: []byte("# Not a lesson")}
	files["book/lesson.go"] = &fstest.MapFile{Data: []byte("package book")}
	b, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"02-sooner", "12-later"}, namesOf(b.Lessons)); diff != "" {
		t.Error(diff)
	}
	folder := onDisk(t, files)
	for name, paths := range map[string][]string{
		"one":            {filepath.Join(folder, "02-sooner")},
		"all":            {folder},
		"with a slash":   {folder + "/"},
		"two of several": {filepath.Join(folder, "12-later"), filepath.Join(folder, "02-sooner") + "/"},
	} {
		b, err := OpenFolders(paths)
		want := []string{"02-sooner", "12-later"}
		if name == "one" {
			want = want[:1]
		}
		if err != nil || !slices.Equal(namesOf(b.Lessons), want) {
			t.Errorf("%s: %v, %v", name, namesOf(b.Lessons), err)
		}
	}
	t.Chdir(filepath.Join(folder, "02-sooner"))
	if b, err := OpenFolders([]string{"."}); err != nil || namesOf(b.Lessons)[0] != "02-sooner" {
		t.Errorf("of its own folder: %v, %v", namesOf(b.Lessons), err)
	}
}

func TestOpenSaysAllThatIsWrong(t *testing.T) {
	files := shelf(t, "01-good", "02-bad", "03-also-bad")
	delete(files, "02-bad/ja.md")
	files["03-also-bad/sing.yaml"] = &fstest.MapFile{Data: []byte("kind: Tset\n")}
	b, err := Open(files)
	wrong, is := errors.AsType[format.Problems](err)
	if !is || len(wrong) != 2 || wrong[0].File != "02-bad/ja.md" || wrong[1].File != "03-also-bad/sing.yaml" {
		t.Errorf("wrong are %v", err)
	}
	if diff := cmp.Diff([]string{"01-good"}, namesOf(b.Lessons)); diff != "" {
		t.Error("the good one is there all the same:", diff)
	}
}

func TestOpenNothing(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		folder:                         "there is no lesson in it",
		file:                           "is a file, not a folder",
		filepath.Join(folder, "01-no"): "no such file or directory",
	} {
		if _, err := OpenFolders([]string{path}); err == nil || err.Error() != path+": "+want {
			t.Errorf("%v, not %s", err, want)
		}
	}
	if _, err := Open(fstest.MapFS{}); err == nil {
		t.Error("an empty file system has lessons")
	}
}

func TestFind(t *testing.T) {
	b, err := Open(shelf(t, "07-run-zundoko", "08-read-the-loop", "12-do-not-sleep"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"7": "07-run-zundoko", "07": "07-run-zundoko", "run-zundoko": "07-run-zundoko", "07-run-zundoko": "07-run-zundoko",
		"12": "12-do-not-sleep",
	} {
		if l, err := b.Find(name); err != nil || l.Name() != want {
			t.Errorf("%s is %v, %v", name, l, err)
		}
	}
	for name, hint := range map[string]string{
		"run-zunduko": `did you mean "run-zundoko"?`,
		"9":           "there are 7-8, 12",
		"xyz":         "known are do-not-sleep, read-the-loop, run-zundoko",
		"":            "known are do-not-sleep, read-the-loop, run-zundoko",
	} {
		_, err := b.Find(name)
		if unknown, is := errors.AsType[*UnknownLesson](err); !is || unknown.Hint != hint || unknown.Name != name {
			t.Errorf("%s: %#v", name, err)
		}
	}
	if _, err := new(Book).Find("7"); err == nil {
		t.Error("an empty book has a lesson")
	}
}

func TestOrder(t *testing.T) {
	b, err := Open(shelf(t, "02-a", "07-b", "11-c", "34-d"))
	if err != nil {
		t.Fatal(err)
	}
	if next := b.After(b.Lessons[1]); next != b.Lessons[2] {
		t.Errorf("after 7 comes %v", next)
	}
	if next := b.After(b.Lessons[3]); next != nil {
		t.Errorf("after the last comes %v", next)
	}
	track, ok := b.Track("ten-minutes")
	if diff := cmp.Diff([]string{"02-a", "07-b", "11-c"}, namesOf(track)); diff != "" || !ok {
		t.Error(diff)
	}
	if _, ok := b.Track("ten-hours"); ok {
		t.Error("there is a track that is not")
	}
	for _, track := range Tracks {
		for _, in := range Languages {
			if track.Title[in] == "" {
				t.Errorf("%s has no title in %s", track.Name, in)
			}
		}
	}
}

func TestLesson(t *testing.T) {
	b, err := Open(shelf(t, "07-run-zundoko"))
	if err != nil {
		t.Fatal(err)
	}
	l := b.Lessons[0]
	if diff := cmp.Diff([]string{"hikawa.yaml"}, l.Files); diff != "" {
		t.Error(diff)
	}
	if l.Number != 7 || l.ID != "run-zundoko" || l.Folder != "07-run-zundoko" || l.Module != "resources" || l.Operators[0].Parameters["song"] != "Zun,Zun,Zun,Zun,Doko" {
		t.Errorf("%+v", l)
	}
	if l.Title(English) != "Run zundoko" || !strings.HasPrefix(l.Intro(Japanese), "このレッスン") || !strings.HasSuffix(l.Finally(English), "left out.") {
		t.Errorf("%q, %q, %q", l.Title(English), l.Intro(Japanese), l.Finally(English))
	}
	if l.Task("sing") != l.Tasks[0] || l.Task("dance") != nil {
		t.Error("tasks are not found by their ids")
	}
	if _, err := l.FS.Open("hikawa.yaml"); err != nil {
		t.Error(err)
	}
}

func TestTask(t *testing.T) {
	b, err := Open(shelf(t, "07-run-zundoko"))
	if err != nil {
		t.Fatal(err)
	}
	task := b.Lessons[0].Tasks[0]
	for name, text := range map[string]string{
		"text": task.Text(English), "first hint": task.Hints(Japanese)[0], "last hint": task.Hints(English)[1],
		"solution": task.Solution(Japanese), "done": task.Done(English), "message": task.Message("other-name", Japanese),
	} {
		if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "#") {
			t.Errorf("the %s is %q", name, text)
		}
	}
	if task.Question(English) != "" || task.Message("another", English) != "" {
		t.Error("there is what is not")
	}
	if task.Description("check-kiyoshi", English) != "There is a Kiyoshi" || task.Description("check-kiyoshi", Japanese) != "Kiyoshi が 1 つある" {
		t.Errorf("%q, %q", task.Description("check-kiyoshi", English), task.Description("check-kiyoshi", Japanese))
	}
}

// TestPartsOfATask checks that each part of a task runs alone as it would in the whole test.
func TestPartsOfATask(t *testing.T) {
	b, err := Open(shelf(t, "07-run-zundoko"))
	if err != nil {
		t.Fatal(err)
	}
	task := b.Lessons[0].Tasks[0]
	checks := task.Checks()
	parts := map[string]*format.Loaded{
		"setup": task.Setup(), "solution": task.Solve(), checks[0].Name: checks[0].Test, checks[1].Name: checks[1].Test,
		"do": task.Wrong[0].Do(), "see": task.Wrong[0].See(),
	}
	for name, part := range parts {
		if len(part.Test.Spec.Steps) != 1 || part.Test.Spec.Steps[0].Name != name {
			t.Errorf("%s has the steps %+v", name, part.Test.Spec.Steps)
		}
		if part.FS == nil || part.Folder != "07-run-zundoko" || part.Err != nil {
			t.Errorf("%s has lost where it is: %+v", name, part)
		}
		says, err := part.Lab()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := strings.HasPrefix(name, "check"); (len(says.Japanese) == 1) != want {
			t.Errorf("%s says %v in Japanese", name, says.Japanese)
		}
	}
	if checks[1].Description[English] != "There is a Kiyoshi" || checks[1].Description[Japanese] != "Kiyoshi が 1 つある" {
		t.Errorf("the second goal is %v", checks[1].Description)
	}
	if n := len(task.Test.Test.Spec.Steps); n != 4 || len(task.Test.Test.Annotations) != 2 {
		t.Errorf("the whole has %d steps and %v", n, task.Test.Test.Annotations)
	}
}

// TestDigest checks that the digest changes with what the learner has to do, and not with the texts.
func TestDigest(t *testing.T) {
	digest := func(edit func(fstest.MapFS)) string {
		files := shelf(t, "01-one")
		edit(files)
		b, err := Open(files)
		if err != nil {
			t.Fatal(err)
		}
		return b.Lessons[0].Digest
	}
	add := func(file string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			f := files["01-one/"+file]
			files["01-one/"+file] = &fstest.MapFile{Data: append(slices.Clone(f.Data), '\n')}
		}
	}
	was := digest(func(fstest.MapFS) {})
	if len(was) != 16 {
		t.Errorf("a digest is %q", was)
	}
	for file, changes := range map[string]bool{"en.md": false, "ja.md": false, "lesson.yaml": true, "sing.yaml": true, "hikawa.yaml": true} {
		if now := digest(add(file)); (now != was) != changes {
			t.Errorf("with another %s it is %s, and was %s", file, now, was)
		}
	}
}

func TestDisplayWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "kubectl": 7, "調整ループ": 10, "Pod が 1 つ": 11, "ｱ": 1, "「質問」": 8, "…": 1, "e\u0301": 1, "💥": 2, "✅⭐☕": 6, "か\u3099": 2, "、。ー": 6,
	} {
		if got := displaywidth.String(s); got != want {
			t.Errorf("%q takes %d columns, not %d", s, got, want)
		}
	}
}
