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
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultValues(FaultCrash, "After"), ResourceVersion: "12"},
		{Verb: VerbGet, Object: object, Reconcile: 4, Values: FaultValues(FaultCrash, "Before")},
		{Values: FaultValues(FaultCrash, "After")},
		{Verb: VerbUpdate, Object: status, Reconcile: 4, Values: FaultValues(FaultHold, "Before")},
		{Verb: VerbUpdate, Object: object, Values: FaultValues(FaultHold, "After")},
		{Verb: VerbDelete, Object: object, Reconcile: 4, Values: FaultValues(FaultAPI, "InternalError")},
		{Verb: VerbPatch, Object: object, Reconcile: 4, Values: FaultValues(FaultAPI, "Lost")},
		{Verb: VerbApply, Object: object, Reconcile: 4, Values: FaultValues(FaultAPI, "Timeout")},
		{Verb: VerbList, Object: Ref{Kind: "ConfigMap"}, Reconcile: 4, Values: FaultValues(FaultAPI, "True")},
		{Verb: Modified, Object: object, Values: FaultValues(FaultWatch, "Cut")},
		{Values: FaultValues(FaultWatch, "Cut")},
		{Verb: Added, Object: object, Values: FaultValues(FaultWatch, "Delay")},
		{Verb: Deleted, Object: object, Values: FaultValues(FaultWatch, "Coalesce")},
		{Verb: VerbUpdate, Object: object, Reconcile: 4, Values: FaultValues(FaultConflict, "")},
		{Verb: VerbUpdate, Object: object, Reconcile: 4, Values: FaultValues(FaultConflict, ""), Error: "not found"},
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultValues(FaultControlPlane, "etcd")},
		{Values: FaultValues(FaultControlPlane, "kube-apiserver")},
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultValues(FaultPod, "Kill", "default/web-1/page", "default/web-2/page")},
		{Values: FaultValues(FaultPod, "OOMKill", "default/web-1/page")},
		{Values: FaultValues(FaultPod, "Unready", "default/web-*")},
		{Values: FaultValues(FaultPod, "Crash", "default/web-*")},
		{Values: FaultValues(FaultPod, "StartLate", "default/web-*")},
		{Verb: VerbUpdate, Object: object, Values: FaultValues(FaultNode, "Lost", "node-1")},
		{Values: FaultValues(FaultNode, "Restart", "node-1", "node-2")},
		{Values: FaultValues(FaultNode, "Lost", "node-1"), Error: "it is not there"},
		{Values: FaultValues(FaultImage, "Error", "nginx:1.*")},
		{Verb: VerbCreate, Object: object, Reconcile: 4, Values: FaultValues(FaultImage, "Delay", "nginx")},
		{Message: "something new"},
		{Values: FaultValues("flood", "Often"), Message: "something newer"},
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
