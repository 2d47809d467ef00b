package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
)

// withNodes starts a sandbox for a benchmark.
func withNodes(b *testing.B, nodes int) (*sandbox.Sandbox, *kubernetes.Clientset) {
	b.Helper()
	s := must(b, func() (*sandbox.Sandbox, error) {
		return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true, Nodes: nodes})
	})
	b.Cleanup(func() { check(b, s.Stop()) })
	return s, must(b, func() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(s.Config()) })
}

// BenchmarkStartWithNode compares, in turns, the start of a sandbox with one node, over when the node is Ready, with the
// start of one without.
func BenchmarkStartWithNode(b *testing.B) {
	warm(b)
	times := map[int]*series{0: {}, 1: {}}
	for range b.N {
		for nodes, s := range times {
			var box *sandbox.Sandbox
			s.time(func() {
				box = must(b, func() (*sandbox.Sandbox, error) {
					return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true, Nodes: nodes})
				})
			})
			check(b, box.Stop())
		}
	}
	report(b, "start-without-node", *times[0])
	report(b, "start-with-node", *times[1])
	b.ReportMetric(float64(times[1].median())/float64(times[0].median()), "node-ratio")
}

// podsMeasured is how many pods one after the other the medians below are of, however short the benchmark is to be.
const podsMeasured = 50

// BenchmarkPods is how long a pod takes from its creation to Ready, with and without a readiness probe, and from its
// deletion until it is gone.
func BenchmarkPods(b *testing.B) {
	_, c := withNodes(b, 1)
	pods := c.CoreV1().Pods("default")
	var ready, probed, gone series
	for i := range max(b.N, podsMeasured) {
		plain, page := pagePod(fmt.Sprint("plain-", i), nil), pagePod(fmt.Sprint("page-", i), nil)
		plain.Spec.Containers[0].ReadinessProbe = nil
		ready.time(func() { createReady(b, c, plain) })
		probed.time(func() { createReady(b, c, page) })
		gone.time(func() {
			check(b, pods.Delete(b.Context(), page.Name, metav1.DeleteOptions{}))
			awaitGone(b, c, page.Name)
		})
		check(b, pods.Delete(b.Context(), plain.Name, metav1.DeleteOptions{}))
	}
	report(b, "pod-created-to-ready", ready)
	report(b, "pod-with-probe-to-ready", probed)
	report(b, "pod-deleted-to-gone", gone)
}

// BenchmarkManyPods is 200 pods on 4 nodes: how long until all are Ready, and what memory a node takes without pods and
// a pod more.
func BenchmarkManyPods(b *testing.B) {
	const nodes, count = 4, 200
	s, c := withNodes(b, nodes)
	for range b.N { // once is enough
	}
	before := nodeMemory(b, s, nodes)
	var all series
	all.time(func() {
		var wg sync.WaitGroup
		for i := range count {
			wg.Go(func() { createReady(b, c, pagePod(fmt.Sprint("many-", i), nil)) })
		}
		wg.Wait()
	})
	after := nodeMemory(b, s, nodes)
	report(b, "200-pods-on-4-nodes", all)
	b.ReportMetric(before/nodes, "node-pss-MiB")
	b.ReportMetric((after-before)/count, "pod-pss-MiB")
}

func nodeMemory(b *testing.B, s *sandbox.Sandbox, nodes int) (total float64) {
	for i := range nodes {
		_, pss := memory(b, s.PIDs()[sandbox.NodeName(i+1)])
		total += pss
	}
	return total
}

// BenchmarkSwitch is how long a Service takes from the change of its selector to the first answer by the new pod, with
// both pods Ready and requests under way all the time; none of them may fail.
func BenchmarkSwitch(b *testing.B) {
	s, c := withNodes(b, 1)
	for _, app := range []string{"one", "two"} {
		pod := pagePod(app, map[string]string{"app": app})
		pod.Spec.Containers[0].Image = map[string]string{"one": "quay.io/daein/prodpage", "two": "quay.io/daein/maintpage"}[app]
		createReady(b, c, pod)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "one"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}
	must(b, func() (*corev1.Service, error) {
		return c.CoreV1().Services("default").Create(b.Context(), service, metav1.CreateOptions{})
	})
	asker := &http.Client{Transport: &http.Transport{DialContext: s.DialContext, DisableKeepAlives: true}}
	answers := map[string]string{"one": "Production Page !", "two": "Maintenance Page !"}
	poll(b, func(ctx context.Context) bool { return ask(ctx, asker) == answers["one"] })
	var last atomic.Value
	var asked, failed atomic.Int64
	last.Store("")
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				answer := ask(ctx, asker)
				if ctx.Err() != nil {
					return
				}
				asked.Add(1)
				if answer == "" {
					failed.Add(1)
				}
				last.Store(answer)
			}
		})
	}
	var flips series
	for i := range max(b.N, podsMeasured) {
		app := []string{"two", "one"}[i%2]
		flips.time(func() {
			must(b, func() (*corev1.Service, error) {
				return c.CoreV1().Services("default").Patch(b.Context(), "web", types.MergePatchType,
					[]byte(`{"spec":{"selector":{"app":"`+app+`"}}}`), metav1.PatchOptions{})
			})
			for last.Load() != answers[app] {
				time.Sleep(200 * time.Microsecond) //nolint:forbidigo // a benchmark looks often and lets others work
			}
		})
	}
	stop()
	wg.Wait()
	report(b, "switch", flips)
	b.ReportMetric(float64(asked.Load()), "switch-requests")
	b.ReportMetric(float64(failed.Load()), "switch-failed")
}

// ask is the first answer's text; empty when there was none.
func ask(ctx context.Context, c *http.Client) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://web.default.svc.cluster.local/", nil)
	if err != nil {
		return ""
	}
	resp, err := c.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// pagePod is a pod that serves a page on port 8080.
func pagePod(name string, labels map[string]string) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{
			Name: "page", Image: "quay.io/daein/prodpage:latest",
			ReadinessProbe: &corev1.Probe{
				PeriodSeconds: 1,
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}},
			},
		}}},
	}
}

func createReady(b *testing.B, c kubernetes.Interface, pod *corev1.Pod) {
	pods := c.CoreV1().Pods(pod.Namespace)
	watch, err := pods.Watch(b.Context(), metav1.SingleObject(pod.ObjectMeta))
	check(b, err)
	defer watch.Stop()
	must(b, func() (*corev1.Pod, error) { return pods.Create(b.Context(), pod, metav1.CreateOptions{}) })
	for event := range watch.ResultChan() {
		if p, ok := event.Object.(*corev1.Pod); ok && isReady(p) {
			return
		}
	}
	b.Errorf("pod %s did not become Ready", pod.Name)
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func awaitGone(b *testing.B, c kubernetes.Interface, name string) {
	poll(b, func(ctx context.Context) bool {
		_, err := c.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
