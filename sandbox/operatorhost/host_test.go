package operatorhost_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func newFlagSet(instance operators.Instance) *pflag.FlagSet {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	instance.Flags(set)
	return set
}

// ask creates a Hikawa, which requests a song.
func (w *fixture) ask(t *testing.T, interval time.Duration) *v1beta1.Hikawa {
	t.Helper()
	hikawa := &v1beta1.Hikawa{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "hikawa-sample"}}
	hikawa.Spec.IntervalMillis = interval.Milliseconds()
	if err := w.client.Create(t.Context(), hikawa); err != nil {
		t.Fatal(err)
	}
	return hikawa
}

// sing requests a song and waits for its end.
func (w *fixture) sing(t *testing.T) client.Object {
	t.Helper()
	hikawa := w.ask(t, 5*time.Millisecond)
	sandboxtest.Eventually(t, "the end of the song", func() error {
		err := w.client.Get(t.Context(), client.ObjectKeyFromObject(hikawa), hikawa)
		if err == nil && !hikawa.Status.Kiyoshied {
			err = errors.New("it goes on")
		}
		return err
	})
	if err := operatorhost.AwaitQuiet(t.Context(), w.journal); err != nil {
		t.Fatal(err)
	}
	return hikawa
}

func TestHardenedSingsUnderItsOwnPermissionsAndIsCollected(t *testing.T) {
	w := start(t, "zundoko", "song", "Zun,Zun,Zun,Zun,Doko")
	hikawa := w.sing(t)
	timeline := trace.NewTimeline(w.journal)
	timeline.Update()
	total := timeline.Tip().Controllers()[trace.ControllerKey{Operator: "zundoko", Controller: "hikawa"}]
	if total == nil || total.Errors != 0 || total.Writes != 2*5+3 {
		t.Errorf("counted were %+v; want no error and 13 writes", total)
	}

	// You delete it with kubectl; the garbage collector deletes the rest. Both are in the journal by name.
	config := w.lab.Config()
	config.UserAgent = "kubectl/v1 (test)"
	op, _ := operators.Find("zundoko")
	demo := rest.CopyConfig(config) // its kubectl acts as another
	demo.Impersonate = rest.ImpersonationConfig{UserName: trace.Demo, Groups: []string{"system:masters"}}
	if err := newClient(t, op, demo).Patch(t.Context(), hikawa, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := newClient(t, op, config).Delete(t.Context(), hikawa); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the words to be collected", func() error {
		var words v1beta1.ZundokoList
		err := w.client.List(t.Context(), &words)
		if err == nil && len(words.Items) > 0 {
			err = fmt.Errorf("%d are left", len(words.Items))
		}
		return err
	})
	const collector = "kube-controller-manager/generic-garbage-collector"
	sandboxtest.Eventually(t, "the journal to name who deleted", func() error {
		actors := map[string]int{}
		for _, e := range w.journal.Since(0) {
			if e.Kind == trace.KindCall && e.Verb == trace.VerbDelete || e.Actor == trace.Demo {
				actors[e.Actor]++
			}
		}
		if actors["you"] != 1 || actors[collector] < 5 || actors[trace.Demo] != 1 {
			return fmt.Errorf("deletes by actor: %v", actors)
		}
		return nil
	})
	w.testGrants(t)
}

func TestClassicSleepsWhileItIsStopped(t *testing.T) {
	sandboxtest.Long(t)
	w := start(t, "zundoko", "variant", "classic")
	w.ask(t, time.Hour)
	// The first reconcile writes how many words it wants and ends; the next one has listed the words and sleeps before it
	// writes. A stop in between only fails a call, which is no reconcile that does not end.
	sandboxtest.Eventually(t, "a reconcile to sleep", func() error {
		timeline := trace.NewTimeline(w.journal)
		timeline.Update()
		asleep := slices.ContainsFunc(timeline.Tip().Running(), func(s *trace.Reconcile) bool {
			listed := slices.ContainsFunc(s.Steps, func(e *trace.Event) bool { return e.Verb == trace.VerbList })
			return s.Controller == "hikawa" && listed && s.Tally.Writes == 0
		})
		if !asleep || timeline.Tip().Total().Writes == 0 {
			return errors.New("none does")
		}
		return nil
	})
	if err := w.operator.Stop(); err != nil {
		t.Error(err)
	}
	told := slices.ContainsFunc(w.journal.Since(0), func(e *trace.Event) bool { return e.Kind == trace.KindNote })
	if !told {
		t.Error("the journal does not say that a reconcile did not end")
	}
}
