package tutor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/progress"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// hikawa returns a Hikawa with a name.
func hikawa(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"intervalMillis": int64(1)}}}
	o.SetAPIVersion("zundokokiyoshi.kaitoy.github.com/v1beta1")
	o.SetKind("Hikawa")
	o.SetNamespace(metav1.NamespaceDefault)
	o.SetName(name)
	return o
}

// TestLesson goes through a lesson as a learner does: it takes a wrong turn, undoes it, asks for hints, does the task,
// predicts wrongly and then rightly, leaves, and comes back.
func TestLesson(t *testing.T) {
	state := filepath.Join(t.TempDir(), progress.FileName)
	kept, err := progress.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	taught, dir := song(t), t.TempDir()
	c := startLesson(t, tutor.Options{Lesson: taught, Language: book.Japanese, Progress: kept, Dir: dir})
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { defer close(watched); c.Watch(ctx) }()
	defer func() { cancel(); <-watched }()

	v := c.await("the first look", func(v tutor.View) bool { return v.Missing != "" })
	if v.Missing != "Hikawa がある" || v.Done || !strings.Contains(v.Text, "歌うオペレーター") || v.Index != 1 || v.Tasks != 2 {
		t.Errorf("at the beginning the view is %+v", v)
	}
	if err := c.Next(t.Context()); err == nil {
		t.Error("a task that is not done was left")
	}
	c.wrongTurn(dir)
	c.hints()

	must(t, c.you.Create(t.Context(), hikawa("song")))
	v = c.await("the end of the task", func(v tutor.View) bool { return v.Done })
	if !strings.Contains(v.DoneText, "歌いました") || !kept.Done("song", "sing") {
		t.Errorf("when it is done the view is %+v", v)
	}
	must(t, c.Next(t.Context()))
	c.back()
	c.predict()
	if err := c.Next(t.Context()); !errors.Is(err, tutor.ErrLessonOver) {
		t.Errorf("after the last task: %v", err)
	}

	again, err := progress.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	if done, total := again.Lesson(taught); done != 2 || total != 2 {
		t.Errorf("%d of %d tasks are remembered", done, total)
	}
}

// wrongTurn takes a wrong turn, damages a manifest too, and undoes both.
func (c *fixture) wrongTurn(dir string) {
	c.Helper()
	must(c, os.WriteFile(filepath.Join(dir, "song.yaml"), []byte("mine"), 0o600))
	must(c, c.you.Create(c.Context(), hikawa("other")))
	c.await("the wrong turn", func(v tutor.View) bool { return v.Notice == "別の歌です。" })
	stage := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "stage"}
	must(c, c.you.Get(c.Context(), key, stage))
	must(c, c.you.Delete(c.Context(), stage.DeepCopy()))

	journal, err := c.Undo(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	if journal != c.lab.Journal() {
		c.Error("the journal is not the lab's")
	}
	if v := c.View(); v.Notice != "" || v.Done {
		c.Errorf("after the undo the view is %+v", v)
	}
	if err := c.you.Get(c.Context(), client.ObjectKeyFromObject(hikawa("other")), hikawa("other")); !apierrors.IsNotFound(err) {
		c.Errorf("after the undo the other song is there: %v", err)
	}
	back := &corev1.ConfigMap{}
	if err := c.you.Get(c.Context(), key, back); err != nil || back.UID != stage.UID {
		c.Errorf("after the undo what the task began with is not there: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "song.yaml"))
	if err != nil || !strings.Contains(string(text), "kind: Hikawa") {
		c.Errorf("the manifest is %q: %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "song.yaml.yours")); err != nil || string(text) != "mine" {
		c.Errorf("the learner's own manifest is lost: %q, %v", text, err)
	}
}

// back goes from the second task back to the first one, which has to be done again, and comes here again.
func (c *fixture) back() {
	c.Helper()
	if _, err := c.Back(c.Context()); err != nil {
		c.Fatal(err)
	}
	if v := c.View(); v.Index != 1 || v.Done || v.DoneText != "" || len(v.Hints) > 0 {
		c.Errorf("back in the first task the view is %+v", v)
	}
	if err := c.you.Get(c.Context(), client.ObjectKeyFromObject(hikawa("song")), hikawa("song")); !apierrors.IsNotFound(err) {
		c.Errorf("back in the first task its song is there: %v", err)
	}
	if _, err := c.Back(c.Context()); err == nil || !strings.Contains(err.Error(), "最初のタスク") {
		c.Errorf("before the first task: %v", err)
	}
	must(c, c.you.Create(c.Context(), hikawa("song")))
	c.await("the end of the first task, again", func(v tutor.View) bool { return v.Done })
	must(c, c.Next(c.Context()))
}

// hints checks that hints are revealed one after the other, and stay revealed.
func (c *fixture) hints() {
	c.Helper()
	must(c, c.Hint())
	must(c, c.Hint())
	if err := c.Hint(); err == nil {
		c.Error("there is a third hint")
	}
	c.Solution()
	if v := c.View(); len(v.Hints) != 2 || v.More || v.Solution != "適用します。" {
		c.Errorf("after two hints the view is %+v", v)
	}
}

// predict acts before it answers, which is refused, undoes that, answers wrongly, is told the right value, and answers again.
func (c *fixture) predict() {
	c.Helper()
	if v := c.View(); v.Missing != "質問への答え" {
		c.Errorf("before the answer %q is missing", v.Missing)
	}
	notes := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "notes"}, Data: map[string]string{"kiyoshis": "1"},
	}
	must(c, c.you.Create(c.Context(), notes.DeepCopy()))
	c.await("the deed without an answer", func(v tutor.View) bool { return strings.Contains(v.Missing, "操作の前の答え") })
	if err := c.Answer(c.Context(), "1"); err == nil || c.View().Answer != "" || c.View().Done {
		c.Errorf("an answer after the deed is taken: %v", err)
	}
	if _, err := c.Undo(c.Context()); err != nil {
		c.Fatal(err)
	}
	must(c, c.Answer(c.Context(), " 2 "))
	must(c, c.you.Create(c.Context(), notes.DeepCopy()))
	c.await("the real number", func(v tutor.View) bool {
		return strings.Contains(v.Notice, "予想は 2") && strings.Contains(v.Notice, "実際は 1")
	})
	must(c, c.Answer(c.Context(), "1"))
	c.await("the end of the task", func(v tutor.View) bool { return v.Done && v.Last })
	if err := c.Answer(c.Context(), "3"); err == nil || c.View().Answer != "1" {
		c.Errorf("an answer after the end is taken: %v, %q", err, c.View().Answer)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TestComeBack begins where the learner left, with the earlier tasks solved.
func TestComeBack(t *testing.T) {
	sandboxtest.Long(t)
	kept, err := progress.Open(filepath.Join(t.TempDir(), progress.FileName))
	must(t, err)
	taught := song(t)
	must(t, kept.Mark("song", "sing", taught.Digest))
	c := startLesson(t, tutor.Options{Lesson: taught, Progress: kept})
	must(t, c.Begin(t.Context()))
	if v := c.View(); v.Task != "count" || v.Done {
		t.Errorf("it begins with %+v", v)
	}
	if err := c.you.Get(t.Context(), client.ObjectKeyFromObject(hikawa("song")), hikawa("song")); err != nil {
		t.Errorf("what the task before had made is not there: %v", err)
	}
}

// hall is the namespace, and bundled the operator, of the lesson.
func hall() client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hall"}} }

func bundled() client.Object {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("operator-lab.dev/v1alpha1")
	o.SetKind("Operator")
	o.SetName("zundoko")
	return o
}

// TestGone deletes what the task needs: the learner is told, and an undo restores it.
func TestGone(t *testing.T) {
	sandboxtest.Long(t)
	c := startLesson(t, tutor.Options{Lesson: song(t)})
	must(t, c.BeginAt(t.Context(), 0))
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kiyoshis.zundokokiyoshi.kaitoy.github.com"}}
	for _, needed := range []client.Object{crd, bundled(), hall()} {
		must(t, c.you.Delete(t.Context(), needed))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		for !strings.Contains(c.View().Notice, needed.GetName()+" is gone") && ctx.Err() == nil {
			_ = c.Check(ctx)
		}
		cancel()
		if !strings.Contains(c.View().Notice, needed.GetName()+" is gone") {
			t.Errorf("that %s is gone is not told: %q", needed.GetName(), c.View().Notice)
		}
		if _, err := c.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := c.View(); v.Notice != "" {
			t.Errorf("after the undo the learner is told %q", v.Notice)
		}
	}
	must(t, c.Solve(t.Context()))
	if !c.View().Done {
		t.Error("after the undo the task cannot be done")
	}
}

// TestNextLetsGo checks that a loop which the learner has paused with a key does not block the next task.
func TestNextLetsGo(t *testing.T) {
	c := startLesson(t, tutor.Options{Lesson: song(t)})
	must(t, c.BeginAt(t.Context(), 0))
	must(t, c.Solve(t.Context()))
	c.lab.Taps("zundoko").Pause()
	must(t, c.Next(t.Context()))
	if c.lab.Taps("zundoko").Paused() {
		t.Error("the operator is still paused")
	}
}

// TestGoneAsMeant checks that nothing is reported for objects which the task removes.
func TestGoneAsMeant(t *testing.T) {
	c := startLesson(t, tutor.Options{Lesson: song(t, func(files fstest.MapFS) {
		text := strings.Replace(string(files["01-song/lesson.yaml"].Data), "- id: sing", "- id: sing\n    removes: [Namespace/hall]", 1)
		files["01-song/lesson.yaml"] = &fstest.MapFile{Data: []byte(text)}
	})})
	must(t, c.BeginAt(t.Context(), 0))
	must(t, c.you.Delete(t.Context(), hall()))
	must(t, c.you.Delete(t.Context(), bundled())) // not part of the task, so it is reported
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for c.View().Notice == "" && ctx.Err() == nil {
		_ = c.Check(ctx)
	}
	if notice := c.View().Notice; !strings.Contains(notice, "zundoko is gone") {
		t.Errorf("the learner is told %q", notice)
	}
}

// TestVerify verifies a correct lesson.
func TestVerify(t *testing.T) {
	verdict, err := startLesson(t, tutor.Options{Lesson: song(t)}).Verify(t.Context())
	must(t, err)
	if len(verdict.Problems) > 0 {
		t.Errorf("the lesson is right, but: %q", verdict.Problems)
	}
	if verdict.Tasks != 2 || verdict.Checks != 4 || verdict.Wrong != 1 || verdict.Undos != 3 {
		t.Errorf("the verdict is %+v", verdict)
	}
}

// TestVerifyFinds verifies a lesson with every kind of mistake.
func TestVerifyFinds(t *testing.T) {
	sandboxtest.Long(t)
	replace := func(file, old, with string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			text := string(files["01-song/"+file].Data)
			if !strings.Contains(text, old) {
				t.Fatalf("there is no %q in %s", old, file)
			}
			files["01-song/"+file] = &fstest.MapFile{Data: []byte(strings.Replace(text, old, with, 1))}
		}
	}
	const stage = "apiVersion: v1\n              kind: ConfigMap\n              metadata: {name: stage}"
	const hikawas = "apiVersion: zundokokiyoshi.kaitoy.github.com/v1beta1\n              kind: Hikawa\n              metadata: {name: %s}"
	c := startLesson(t, tutor.Options{Lesson: song(t,
		replace("sing.yaml", "        - assert:\n            resource:\n              "+fmt.Sprintf(hikawas, "song"), "        - assert:\n            resource:\n              "+stage),
		replace("sing.yaml", "        - assert:\n            resource:\n              "+fmt.Sprintf(hikawas, "other"), "        - assert:\n            resource:\n              "+stage),
		replace("count.yaml", "(to_number(kiyoshis)): ($values.answer)", "(to_number(kiyoshis) == $values.answer): true"),
	)})
	verdict, err := c.Verify(t.Context())
	must(t, err)
	for _, want := range []string{
		"task sing: check-asked holds before the solution", "task sing: check-asked holds after an undo",
		"task sing: the wrong turn other is seen at the start", "task sing: the wrong turn other is seen after the solution",
		"task count: a wrong answer is not told the right one",
	} {
		if !slices.ContainsFunc(verdict.Problems, func(p string) bool { return strings.HasPrefix(p, want) }) {
			t.Errorf("%q is not among the problems: %q", want, verdict.Problems)
		}
	}
}
