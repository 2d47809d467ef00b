package taps_test

import (
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestOwnWriteWakesItsOperator(t *testing.T) {
	l := newLab(t)
	k := &keeper{}
	l.startKeeper(l.newTaps("keeper"), k)
	l.must(l.you.Create(t.Context(), l.configMap("a", map[string]string{"word": "zun"})))
	l.await("a second reconcile", ended("a", 2))

	s := l.timeline.Tip()
	reconciles := reconcilesOf(s, "a")
	first, second := reconciles[0], reconciles[1]
	w := s.Wakes(first)[0]
	if w.Watch == nil || w.Watch.Object.Kind != "ConfigMap" || w.Write == nil || w.Write.Actor != "you" || w.Own {
		t.Errorf("the first reconcile was woken by %+v, want your create of the ConfigMap", w)
	}
	if got := first.Tally; got.CacheReads != 3 || got.ServerReads != 0 || got.Writes != 1 || got.ByVerb["create Secret"] != 1 {
		t.Errorf("the first reconcile counts %+v", got)
	}
	w = s.Wakes(second)[0]
	if !w.Own || w.Watch.Object.Kind != "Secret" || w.Watch.Verb != trace.Added || w.Write.Reconcile != first.ID {
		t.Errorf("the second reconcile was woken by %+v, want the operator's own create", w)
	}
	if !s.Own(second) || s.Own(first) {
		t.Error("own marks are wrong")
	}
	if second.Tally.Writes != 0 || second.Outcome() != trace.OutcomeDone {
		t.Errorf("the second reconcile: %+v %s", second.Tally, second.Outcome())
	}
	logs := first.Logs()
	if len(logs) != 1 || logs[0].Message != "making a secret" || strings.Join(logs[0].Values, "=") != "of=zun" {
		t.Errorf("log lines: %+v", logs)
	}
	create := w.Write
	if create.Status != 201 || create.Source != trace.Server || create.ResourceVersion == "" || create.Object.UID == "" {
		t.Errorf("the create is recorded as %+v", create)
	}
	if strings.Contains(string(create.After), "enVu") || !strings.Contains(string(create.After), "3 bytes, sha256") {
		t.Errorf("the secret's value is not hidden: %s", create.After)
	}
	if o := s.Object(trace.Ref{APIVersion: "v1", Kind: "Secret", Namespace: l.namespace, Name: "a"}); o == nil || len(o.Meta().Owners) != 1 {
		t.Errorf("the owner tree does not know the Secret: %+v", o)
	}
}

func TestDroppedEvent(t *testing.T) {
	l := newLab(t)
	d := &deployer{}
	l.start(l.newTaps("deployer"), ctrl.Options{}, d.setup)
	l.must(l.you.Create(t.Context(), l.deployment()))
	l.await("a dropped event", func(s *trace.State) bool { return s.Total().Dropped == 1 })
	l.await("the reconcile's end", ended("web", 1))
	drop := l.timeline.Tip().Drops()[0]
	if drop.Controller != "deployer" || drop.Reason != "status or metadata only" {
		t.Errorf("drop: %+v", drop)
	}
	write := l.timeline.Tip().Cause(l.timeline.Event(drop.Cause))
	if write == nil || write.Object.Subresource != "status" || write.Verb != trace.VerbUpdate {
		t.Errorf("the dropped event echoes %+v, want the status update", write)
	}
}
