package trace

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// faults returns a journal with every kind of fault.
func faults() *Journal {
	j := New(Options{Now: func() time.Time { return time.Unix(0, 0) }})
	object := Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "song", UID: "u1"}
	status := object
	status.Subresource = "status"
	for i, e := range []Event{
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultCrash, Detail: "After"}.Values(), ResourceVersion: "12"},
		{Verb: VerbGet, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultCrash, Detail: "Before"}.Values()},
		{Values: FaultPayload{Kind: FaultCrash, Detail: "After"}.Values()},
		{Verb: VerbUpdate, Object: status, Reconcile: 4, Values: FaultPayload{Kind: FaultHold, Detail: "Before"}.Values()},
		{Verb: VerbUpdate, Object: object, Values: FaultPayload{Kind: FaultHold, Detail: "After"}.Values()},
		{Verb: VerbDelete, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultAPI, Detail: "InternalError"}.Values()},
		{Verb: VerbPatch, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultAPI, Detail: "Lost"}.Values()},
		{Verb: VerbApply, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultAPI, Detail: "Timeout"}.Values()},
		{Verb: VerbList, Object: Ref{Kind: "ConfigMap"}, Reconcile: 4, Values: FaultPayload{Kind: FaultAPI, Detail: "True"}.Values()},
		{Verb: Modified, Object: object, Values: FaultPayload{Kind: FaultWatch, Detail: "Cut"}.Values()},
		{Values: FaultPayload{Kind: FaultWatch, Detail: "Cut"}.Values()},
		{Verb: Added, Object: object, Values: FaultPayload{Kind: FaultWatch, Detail: "Delay"}.Values()},
		{Verb: Deleted, Object: object, Values: FaultPayload{Kind: FaultWatch, Detail: "Coalesce"}.Values()},
		{Verb: VerbUpdate, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultConflict, Detail: ""}.Values()},
		{Verb: VerbUpdate, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultConflict, Detail: ""}.Values(), Error: "not found"},
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultPayload{Kind: FaultControlPlane, Detail: "etcd"}.Values()},
		{Values: FaultPayload{Kind: FaultControlPlane, Detail: "kube-apiserver"}.Values()},
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultPayload{FaultPod, "Kill", []string{"default/web-1/page", "default/web-2/page"}}.Values()},
		{Values: FaultPayload{FaultPod, "OOMKill", []string{"default/web-1/page"}}.Values()},
		{Values: FaultPayload{FaultPod, "Unready", []string{"default/web-*"}}.Values()},
		{Values: FaultPayload{FaultPod, "Crash", []string{"default/web-*"}}.Values()},
		{Values: FaultPayload{FaultPod, "StartLate", []string{"default/web-*"}}.Values()},
		{Verb: VerbUpdate, Object: object, Values: FaultPayload{FaultNode, "Lost", []string{"node-1"}}.Values()},
		{Values: FaultPayload{FaultNode, "Restart", []string{"node-1", "node-2"}}.Values()},
		{Values: FaultPayload{FaultNode, "Lost", []string{"node-1"}}.Values(), Error: "it is not there"},
		{Values: FaultPayload{FaultImage, "Error", []string{"nginx:1.*"}}.Values()},
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultPayload{FaultImage, "Delay", []string{"nginx"}}.Values()},
		{Message: "something new"},
		{Values: FaultPayload{Kind: "flood", Detail: "Often"}.Values(), Message: "something newer"},
		{Verb: Modified, Object: object, Values: FaultPayload{Kind: FaultWatch, Detail: "Gone"}.Values()},
		{Verb: Added, Object: object, Values: FaultPayload{Kind: FaultStale, Detail: "Began"}.Values()},
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultPayload{FaultStale, "Restart", []string{"0s", "ConfigMap"}}.Values()},
		{Object: Ref{Kind: "ConfigMap"}, Values: FaultPayload{Kind: FaultStale, Detail: "Over"}.Values()},
	} {
		e.Kind, e.Actor, e.Operator, e.Reason, e.At = KindFault, "lab", "keeper", fmt.Sprintf("f%d", i), time.Duration(i+1)*time.Millisecond
		j.Append(e)
	}
	return j
}

func TestFaults(t *testing.T) {
	for _, l := range []Language{English, Japanese} {
		j := faults()
		tl := NewTimeline(j)
		tl.Update()
		var b bytes.Buffer
		for _, e := range j.Since(0) {
			fmt.Fprintln(&b, tl.Tip().Why(e, l))
		}
		fmt.Fprintln(&b)
		if err := NewPrinter(&b, j, PrintOptions{Language: l}).Update(); err != nil {
			t.Fatal(err)
		}
		golden(t, "faults."+string(l)+".txt", b.String())
	}
}

func TestFaultsAreSavedAndLoaded(t *testing.T) {
	j := faults()
	loaded, report, err := Load(bytes.NewReader(saved(t, j)), Options{})
	if err != nil || !report.Complete() {
		t.Fatal(err, report)
	}
	if diff := cmp.Diff(j.Since(0), loaded.Since(0)); diff != "" {
		t.Error(diff)
	}
}

// TestHTMLOfFaults checks that each fault has its own row and mark.
func TestHTMLOfFaults(t *testing.T) {
	j := faults()
	n := j.Stats().Events
	j.Append(Event{Kind: KindDequeue, Operator: "keeper", Reconcile: 1}) // needed for a drawing
	page := htmlOf(t, j, HTMLOptions{})
	if got, want := strings.Count(page, `<li class="row other`), n; got != want {
		t.Errorf("%d rows for %d faults", got, want)
	}
	if got, want := strings.Count(page, `<a class="mark fault"`), n; got != want {
		t.Errorf("%d marks for %d faults", got, want)
	}
	if !strings.Contains(page, "The fault f0 ended keeper after create ConfigMap song in #4.") {
		t.Error("a fault is not told")
	}
}
