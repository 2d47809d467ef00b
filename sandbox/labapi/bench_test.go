package labapi_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/labapi"
)

// BenchmarkStart measures the time until kube-apiserver serves the group, and until it is gone, and the memory of this
// process that the server holds, in MiB.
func BenchmarkStart(b *testing.B) {
	var starts, stops []time.Duration
	before := heap()
	held := before
	for range b.N {
		began := time.Now()
		s, err := labapi.Start(b.Context(), cluster.Config(), labapi.Options{Backend: newLab()})
		if err != nil {
			b.Fatal(err)
		}
		starts = append(starts, time.Since(began))
		held = heap()
		began = time.Now()
		if err := s.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
		stops = append(stops, time.Since(began))
	}
	b.ReportMetric(median(starts), "start-ms")
	b.ReportMetric(median(stops), "stop-ms")
	b.ReportMetric(float64(held-before)/(1<<20), "heap-MiB")
	b.ReportMetric(float64(heap()-before)/(1<<20), "heap-left-MiB")
}

// BenchmarkRead reads one loop of 200, and all of them, through kube-apiserver, each time after a change of one.
func BenchmarkRead(b *testing.B) {
	l := newLab()
	for i := range 200 {
		l.loops = append(l.loops, loop("default", fmt.Sprint("read-", i), "zundoko"))
	}
	serve(b, l)
	loops := client(b, cluster.Config(), "loops").Namespace("default")
	var gets, lists []time.Duration
	for i := range b.N {
		l.change(func() { l.loops[i%200].Status.Reconciles++ })
		began := time.Now()
		if _, err := loops.Get(b.Context(), "hikawa.read-0", metav1.GetOptions{}); err != nil {
			b.Fatal(err)
		}
		gets = append(gets, time.Since(began))
		began = time.Now()
		if _, err := loops.List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		lists = append(lists, time.Since(began))
	}
	b.ReportMetric(median(gets), "get-ms")
	b.ReportMetric(median(lists), "list-200-ms")
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}
