package tutor_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/lessons/tutor"
)

// BenchmarkLesson measures what a learner waits for: from the command to the first page, in a sandbox that boots; from
// a change in the cluster to the tick; from an undo to the start of the task.
func BenchmarkLesson(b *testing.B) {
	b.ReportAllocs()
	var start, begin, tick, undo time.Duration
	for b.Loop() {
		began := time.Now()
		c := startLesson(b, tutor.Options{Lesson: song(b)})
		start += time.Since(began)
		began = time.Now()
		must(b, c.BeginAt(b.Context(), 1)) // with the first task solved, so that only the tutor is measured
		begin += time.Since(began)
		ctx, cancel := context.WithCancel(b.Context())
		watched := make(chan struct{})
		go func() { defer close(watched); c.Watch(ctx) }()
		began = time.Now()
		must(b, c.you.Create(b.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "notes"}, Data: map[string]string{"kiyoshis": "1"},
		}))
		c.await("the tick", func(v tutor.View) bool { return v.Checks[0].Done })
		tick += time.Since(began)
		cancel()
		<-watched
		began = time.Now()
		_, err := c.Undo(b.Context())
		undo += time.Since(began)
		must(b, err)
	}
	for name, sum := range map[string]time.Duration{"boot-ms": start, "begin-ms": begin, "tick-ms": tick, "undo-ms": undo} {
		b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), name)
	}
}
