package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestLoopCountsWhatTheJournalHas compares a Loop with the journal, counted by hand.
func TestLoopCountsWhatTheJournalHas(t *testing.T) {
	w := open(t)
	w.load(song())
	w.arm("refuse", v1alpha1.FaultSpec{
		API:   &v1alpha1.APIFault{Reply: v1alpha1.ReplyInternalError},
		Match: &v1alpha1.FaultMatch{Verbs: []string{"create"}, Kind: "Zundoko", Nth: 2},
	})
	w.sing("hikawa")
	w.must(operatorhost.AwaitQuiet(t.Context(), w.lab.Journal()))
	var loop *v1alpha1.Loop
	w.eventually("the loop to say what the journal does", func() error { // its last event may still be missing
		loop = w.loop("hikawa", quiet)
		return sameCounts(loop.Status, countLoop(w.lab.Journal().Since(0), trace.Key{Namespace: w.namespace, Name: "hikawa"}))
	})
	got := loop.Status
	if got.Writes.ByKind["Zundoko"] != 5 {
		t.Errorf("%d words were created, want 5", got.Writes.ByKind["Zundoko"])
	}
	if got.Errors != 1 || got.Writes.Failed != 1 || got.Hot || got.Panics != 0 || got.Conflicts != 0 {
		t.Errorf("the loop is %+v", got)
	}
	if got.Last.Outcome != "done" || got.Last.Reconcile == 0 || got.Last.Cause == "" {
		t.Errorf("the last reconcile is %+v", got.Last)
	}
	i := slices.IndexFunc(got.Logs, func(l v1alpha1.LoopLog) bool { return l.Message == "Saying a word" })
	if i < 0 || got.Logs[i].Times != 6 || got.Logs[i].Error {
		t.Errorf("the log is %+v; want a word to be said six times", got.Logs)
	}
	if loop.Spec.Operator != "zundoko" || loop.Spec.Key != w.namespace+"/hikawa" || loop.Name != "hikawa.hikawa" {
		t.Errorf("it is the loop %s %+v", loop.Name, loop.Spec)
	}
}

// sameCounts compares a Loop's counts with the expected ones.
func sameCounts(got, want v1alpha1.LoopStatus) error {
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"reconciles", got.Reconciles, want.Reconciles},
		{"errors", got.Errors, want.Errors},
		{"requeues", got.Requeues, want.Requeues},
		{"writes", got.Writes.Total, want.Writes.Total},
		{"failed writes", got.Writes.Failed, want.Writes.Failed},
		{"applied writes", got.Writes.ByVerb["apply"], want.Writes.ByVerb["apply"]},
		{"created words", got.Writes.ByKind["Zundoko"], want.Writes.ByKind["Zundoko"]},
		{"written status", got.Writes.ByKind["Hikawa/status"], want.Writes.ByKind["Hikawa/status"]},
		{"reads of the cache", got.Reads.Cache, want.Reads.Cache},
		{"reads of the server", got.Reads.Server, want.Reads.Server},
		{"objects read", got.Reads.Items, want.Reads.Items},
		{"merged events", got.Events.Merged, want.Events.Merged},
		{"dropped events", got.Events.Dropped, want.Events.Dropped},
	} {
		if c.got != c.want {
			return fmt.Errorf("%s: %d, the journal has %d", c.what, c.got, c.want)
		}
	}
	return nil
}

// countLoop counts the events of a key.
func countLoop(events []*trace.Event, key trace.Key) (s v1alpha1.LoopStatus) {
	s.Writes.ByVerb, s.Writes.ByKind = map[string]int64{}, map[string]int64{}
	for _, e := range events {
		if e.Operator != "zundoko" {
			continue
		}
		if e.Kind == trace.KindDrop && e.Object.Key() == key {
			s.Events.Dropped++
		}
		if e.Key != key {
			continue
		}
		switch {
		case e.Kind == trace.KindStart:
			s.Reconciles++
		case e.Kind == trace.KindEnd && e.Outcome == trace.OutcomeRequeueAfter:
			s.Requeues++
		case e.Kind == trace.KindEnd && e.Outcome == trace.OutcomeError:
			s.Errors++
		case e.Kind == trace.KindMerge:
			s.Events.Merged++
		case e.Kind != trace.KindCall || e.Via == trace.ViaRecorder:
		case e.IsWrite() && e.Error != "":
			s.Writes.Failed++
		case e.IsWrite():
			kind := e.Object.Kind
			if e.Object.Subresource != "" {
				kind += "/" + e.Object.Subresource
			}
			s.Writes.Total++
			s.Writes.ByVerb[e.Verb]++
			s.Writes.ByKind[kind]++
		default:
			if e.Source == trace.Cache {
				s.Reads.Cache++
			} else {
				s.Reads.Server++
			}
			if e.Verb == trace.VerbList {
				s.Reads.Items += int64(e.Count)
			} else if e.Error == "" {
				s.Reads.Items++
			}
		}
	}
	return s
}

// TestLoopIsNotQuiet checks a key that waits for a timer, or is held.
func TestLoopIsNotQuiet(t *testing.T) {
	w := open(t)
	w.load(song())
	hikawa := &v1beta1.Hikawa{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "slow"}}
	hikawa.Spec.IntervalMillis = 3_600_000
	w.must(w.you.Create(t.Context(), hikawa))
	w.loop("slow", func(s *v1alpha1.LoopStatus) bool { return s.Requeues > 0 && !s.Quiet })
	w.must(w.you.Delete(t.Context(), hikawa))
	w.loop("slow", quiet)
}

func TestExplain(t *testing.T) {
	w := open(t)
	w.load(song())
	w.sing("hikawa")
	w.must(operatorhost.AwaitQuiet(t.Context(), w.lab.Journal()))
	for _, test := range []struct{ kind, name string }{{"Hikawa", "hikawa"}, {"Zundoko", "hikawa-zundoko-003"}, {"Kiyoshi", "hikawa-kiyoshi"}} {
		lines := w.lab.Explain(trace.Ref{APIVersion: v1beta1.GroupVersion.String(), Kind: test.kind, Namespace: w.namespace, Name: test.name})
		if len(lines) < 2 || !strings.Contains(lines[0], "of hikawa "+w.namespace+"/hikawa: done") {
			t.Errorf("of %s %s is known %q", test.kind, test.name, lines)
		}
	}
	if lines := w.lab.Explain(trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "nobody"}); lines != nil {
		t.Errorf("of nobody is known %q", lines)
	}
}

// TestOthersAreInTheJournal checks that writes of others to the operator's objects are recorded with their names, and
// requests to the lab's own API are not.
func TestOthersAreInTheJournal(t *testing.T) {
	w := open(t)
	w.load(song())
	w.sing("hikawa")
	w.must(w.you.Delete(t.Context(), &v1beta1.Kiyoshi{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "hikawa-kiyoshi"}}))
	w.eventually("the deletion to be told", func() error {
		return unless(w.count(func(e *trace.Event) bool { return e.Actor == lab.Person && e.Verb == trace.VerbDelete }) == 1, "it is not")
	})
	w.must(w.you.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "unrelated"}}))
	w.loop("hikawa", quiet)
	for _, e := range w.lab.Journal().Since(0) {
		if strings.HasPrefix(e.Object.APIVersion, "operator-lab.dev/") || e.Object.Name == "unrelated" {
			t.Errorf("the journal has %s %s by %s", e.Verb, e.Object, e.Actor)
		}
	}
}
