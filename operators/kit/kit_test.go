package kit_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/operator-lab/operator-lab/operators/kit"
)

func TestContains(t *testing.T) {
	fields := map[string]any{
		"replicas": int64(1),
		"selector": map[string]any{"app": "httpd"},
		"labels":   map[string]any{"app": "httpd", "team": "blue"},
		"ports":    []any{map[string]any{"port": int64(1)}, map[string]any{"name": "web", "port": int64(8080)}},
	}
	for name, test := range map[string]struct {
		want      any
		contained bool
	}{
		"nothing":            {map[string]any{}, true},
		"a value":            {map[string]any{"replicas": int64(1)}, true},
		"another value":      {map[string]any{"replicas": int64(2)}, false},
		"a missing key":      {map[string]any{"paused": true}, false},
		"one of the labels":  {map[string]any{"labels": map[string]any{"app": "httpd"}}, true},
		"another label":      {map[string]any{"labels": map[string]any{"app": "web"}}, false},
		"one of the ports":   {map[string]any{"ports": []any{map[string]any{"port": int64(8080)}}}, true},
		"another port":       {map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}, false},
		"the selector":       {map[string]any{"selector": map[string]any{"app": "httpd"}}, true},
		"a shorter selector": {map[string]any{"selector": map[string]any{}}, false},
		"a list for a map":   {map[string]any{"labels": []any{"app"}}, false},
		"a map for a value":  {map[string]any{"replicas": map[string]any{"min": int64(1)}}, false},
	} {
		if got := kit.Contains(fields, test.want); got != test.contained {
			t.Errorf("%s: %v, want %v", name, got, test.contained)
		}
	}
}

func TestSpecChanged(t *testing.T) {
	object := func(uid types.UID, generation int64) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "example", UID: uid, Generation: generation}}
	}
	for name, test := range map[string]struct {
		now  *corev1.Pod
		want bool
	}{
		"nothing of the spec":            {object("uid", 1), false},
		"the spec":                       {object("uid", 2), true},
		"made again while nobody looked": {object("other", 1), true},
	} {
		if got := kit.SpecChanged().Update(event.UpdateEvent{ObjectOld: object("uid", 1), ObjectNew: test.now}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	for name, got := range map[string]bool{
		"a new object":  kit.SpecChanged().Create(event.CreateEvent{Object: object("uid", 1)}),
		"a deleted one": kit.SpecChanged().Delete(event.DeleteEvent{Object: object("uid", 1)}),
	} {
		if !got {
			t.Errorf("%s is not let through", name)
		}
	}
}

func TestLastWritten(t *testing.T) {
	pod := func(uid types.UID, version string, phase corev1.PodPhase) *corev1.Pod {
		meta := metav1.ObjectMeta{Name: "example", UID: uid, ResourceVersion: version}
		return &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: phase}}
	}
	const cached, written = corev1.PodPending, corev1.PodRunning
	for name, test := range map[string]struct {
		forget bool
		cache  *corev1.Pod
		want   corev1.PodPhase
	}{
		"the cache is behind":          {cache: pod("uid", "9", cached), want: written},
		"the cache has caught up":      {cache: pod("uid", "10", cached), want: cached},
		"the cache is ahead":           {cache: pod("uid", "11", cached), want: cached},
		"another object of that name":  {cache: pod("other", "9", cached), want: cached},
		"no number is no version":      {cache: pod("uid", "x", cached), want: cached},
		"an object that was forgotten": {forget: true, cache: pod("uid", "9", cached), want: cached},
	} {
		var w kit.LastWritten[*corev1.Pod]
		if got := w.Latest(test.cache).Status.Phase; got != cached {
			t.Errorf("%s: nothing was written, and the status is %s", name, got)
		}
		w.Remember(pod("uid", "10", written))
		if test.forget {
			w.Forget(types.NamespacedName{Name: "example"})
		}
		if got := w.Latest(test.cache).Status.Phase; got != test.want {
			t.Errorf("%s: the status is %s, want %s", name, got, test.want)
		}
		// What the cache was newer than is not remembered any more.
		if got := w.Latest(pod("uid", "9", cached)).Status.Phase; got != test.want {
			t.Errorf("%s: later the status is %s, want %s", name, got, test.want)
		}
	}
}
