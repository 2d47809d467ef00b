package taps_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

var record = flag.Bool("record", false, "write the journals of TestRecord into ../trace/testdata")

// TestRecord produces all events that a journal can hold. With -record the journal is saved for the golden files of
// sandbox/trace and the terminal UI.
func TestRecord(t *testing.T) {
	l := newLab(t)
	var calls atomic.Int32
	k := &keeper{}
	op := l.startKeeper(l.newTaps("keeper"), k)
	d := &deployer{}
	l.start(l.newTaps("deployer"), ctrl.Options{}, d.setup)
	k.then = func(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
		switch {
		case cm.Name == "song" && calls.Add(1) == 1:
			op.mgr.GetEventRecorder("keeper").Eventf(cm, nil, corev1.EventTypeNormal, "Singing", "Sing", "キ・ヨ・シ!")
			return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil
		case cm.Name == "flaky" && calls.Add(1) < 5:
			return reconcile.Result{}, errors.New("the choir is late")
		case cm.Name == "broken" && cm.Data["word"] != "fixed":
			return reconcile.Result{}, reconcile.TerminalError(errors.New("no such word"))
		case cm.Name == "count" && cm.Annotations["seen"] == "":
			old := cm.DeepCopy()
			cm.Annotations = map[string]string{"seen": "yes"}
			return reconcile.Result{}, k.Patch(ctx, cm, client.MergeFrom(old))
		}
		return reconcile.Result{}, nil
	}
	quiet := func(s *trace.State) bool { return len(s.Running()) == 0 && len(s.Queue()) == 0 }

	l.must(l.you.Create(t.Context(), l.configMap("song", map[string]string{"word": "ズン"})))
	l.await("the song", func(s *trace.State) bool { return len(reconcilesOf(s, "song")) >= 3 && quiet(s) })
	calls.Store(1)
	l.must(l.you.Create(t.Context(), l.configMap("flaky", nil)))
	l.await("the back-off", func(s *trace.State) bool { return len(reconcilesOf(s, "flaky")) >= 5 && quiet(s) })
	l.must(l.you.Create(t.Context(), l.configMap("broken", nil)))
	l.await("the hopeless one", func(s *trace.State) bool { return len(reconcilesOf(s, "broken")) >= 2 && quiet(s) })
	l.must(l.you.Create(t.Context(), l.configMap("count", nil)))
	l.await("the patch and its echo", func(s *trace.State) bool { return len(reconcilesOf(s, "count")) >= 3 && quiet(s) })
	l.must(l.you.Create(t.Context(), l.deployment()))
	l.await("a drop", func(s *trace.State) bool { return s.Total().Dropped > 0 && quiet(s) })

	op.taps.Pause()
	l.must(l.you.Create(t.Context(), l.configMap("held", nil)))
	for i := range 3 {
		l.must(l.you.Update(t.Context(), l.configMap("song", map[string]string{"word": fmt.Sprint("ドコ", i)})))
	}
	l.await("two keys", func(s *trace.State) bool { return ready(2)(s) && s.Queue()[1].Merged() == 2 })
	op.taps.StepCall()
	l.await("a held write", func(s *trace.State) bool { return len(s.Running()) == 1 && s.Running()[0].Held != nil })
	op.taps.StepCall()
	l.await("the write", ended("held", 1))
	op.taps.Resume()
	l.await("quiet", func(s *trace.State) bool { return len(reconcilesOf(s, "held")) >= 2 && quiet(s) })
	l.must(l.you.Delete(t.Context(), l.configMap("broken", nil)))
	l.await("the deletion", func(s *trace.State) bool { return len(reconcilesOf(s, "broken")) >= 3 && quiet(s) })

	s := l.timeline.Tip()
	for _, reconcile := range s.Reconciles() {
		t.Log(s.WhyReconcile(reconcile, trace.English))
		t.Log(s.WhyReconcile(reconcile, trace.Japanese))
	}
	var out bytes.Buffer
	l.must(l.journal.Save(&out))
	loaded, report, err := trace.Load(bytes.NewReader(out.Bytes()), trace.Options{})
	if err != nil || !report.Complete() || loaded.Stats().Last != l.journal.Stats().Last {
		t.Errorf("load: %v, %+v", err, report)
	}
	if *record {
		clean := bytes.ReplaceAll(out.Bytes(), []byte(l.namespace), []byte("default"))
		l.must(os.WriteFile(filepath.Join("..", "trace", "testdata", "tour.jsonl"), clean, 0o600))
	}
}
