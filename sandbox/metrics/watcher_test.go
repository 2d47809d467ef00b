package metrics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// server answers as an API server does: with operators of a lab, pods and what they tell.
type server struct {
	mu        sync.Mutex
	operators []string
	pods      []corev1.Pod
	told      map[string]string // by path
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch text, there := s.told[r.URL.Path]; {
	case there:
		fmt.Fprint(w, text)
	case r.URL.Path == "/apis/operator-lab.dev/v1alpha1/operators" && s.operators != nil:
		var list v1alpha1.OperatorList
		for _, name := range s.operators {
			list.Items = append(list.Items, v1alpha1.Operator{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.URL.Path == "/api/v1/pods":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: s.pods})
	default:
		http.Error(w, "nothing is there", http.StatusNotFound)
	}
}

// pod returns a pod that runs.
func pod(namespace, name string, labels, annotations map[string]string, ports ...corev1.ContainerPort) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Ports: ports}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}
	return p
}

func port(name string, n int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: n}
}

func watcher(t *testing.T, s *server, o Options) *Watcher {
	t.Helper()
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	o.Config, o.Interval, o.Window = &rest.Config{Host: api.URL}, time.Second, time.Minute
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTargets checks what is read, with which labels, and what is said of what does not answer.
func TestTargets(t *testing.T) {
	member := map[string]string{"app": "etcd", "etcd_cluster": "kv"}
	secure := pod("default", "kv-c", member, nil)
	secure.Spec.Containers[0].Command = []string{"etcd", "--listen-client-urls=https://0.0.0.0:2379"}
	waiting := pod("default", "waiting", nil, nil, port("metrics", 1))
	waiting.Status.Phase = corev1.PodPending
	s := &server{
		operators: []string{"zundoko"},
		pods: []corev1.Pod{
			pod("default", "kv-a", member, nil, port("client", 2379), port("metrics", 2381)), pod("default", "kv-b", member, nil), secure,
			pod("etcd-operator", "etcd-operator-x", nil, nil, port("metrics", 8080)),
			pod("shop", "web", nil, nil, port("http", 80), port("http-metrics", 9090), port("https-metrics", 9091)),
			pod("shop", "asks", nil, map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "81", "prometheus.io/path": "/m"}),
			pod("shop", "none", nil, map[string]string{"prometheus.io/scrape": "false"}, port("http", 80)), waiting,
		},
		told: map[string]string{
			"/apis/operator-lab.dev/v1alpha1/operators/zundoko/metrics":                      "x 1\n",
			"/api/v1/namespaces/default/pods/kv-a:2381/proxy/metrics":                        "x 2\n",
			"/api/v1/namespaces/etcd-operator/pods/etcd-operator-x:8080/proxy/metrics":       "<html>",
			"/api/v1/namespaces/shop/pods/web:9090/proxy/metrics":                            "x{pod=\"theirs\"} 3\n",
			"/api/v1/namespaces/shop/pods/asks:81/proxy/m":                                   "x 4\n",
			"/api/v1/namespaces/shop/pods/web:9091/proxy/metrics":                            "x 5\n",
			"/api/v1/namespaces/default/pods/waiting:1/proxy/metrics":                        "x 6\n",
			"/api/v1/namespaces/shop/pods/none:80/proxy/metrics":                             "x 7\n",
			"/api/v1/namespaces/default/pods/kv-c:2379/proxy/metrics":                        "x 8\n",
			"/api/v1/namespaces/default/pods/https:kv-c:2379/proxy/metrics":                  "x 9\n",
			"/apis/operator-lab.dev/v1alpha1/operators/somebody-who-is-not-there/proxy/what": "x 10\n",
		},
	}
	rules, err := ParseRules("r", []byte("groups: [{name: g, rules: [{alert: A, expr: x}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	w := watcher(t, s, Options{Rules: rules})
	at := time.Unix(1_800_000_000, 0)
	p, err := w.Look(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, target := range p.Targets {
		got = append(got, fmt.Sprintf("%s job=%s operator=%s up=%v %s", target.Name(), target.Labels["job"], target.Labels["operator"], target.Up, target.Error))
	}
	want := []string{
		"default/kv-c job=etcd operator=etcd up=false not asked: it wants a certificate of its clients, also for metrics",
		"default/kv-a job=etcd operator=etcd up=true ",
		"default/kv-b job=etcd operator=etcd up=false nothing is there",
		"etcd-operator/etcd-operator-x job=operator operator=etcd up=false its answer is no text of metrics: text format parsing error in line 1: invalid metric name",
		"shop/asks job=shop operator= up=true ",
		"shop/web job=shop operator= up=true ",
		"operator zundoko job=operator operator=zundoko up=true ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	x, err := w.engine.At(t.Context(), w.store, "x", at)
	if err != nil || len(x) != 4 {
		t.Errorf("x is %v (error: %v)", x, err)
	}
	up, err := w.engine.At(t.Context(), w.store, "count_values(\"up\", up)", at)
	if err != nil || len(up) != 2 {
		t.Errorf("up is %v (error: %v)", up, err)
	}
	own, err := w.engine.At(t.Context(), w.store, `x{pod="web",exported_pod="theirs"}`, at)
	if err != nil || len(own) != 1 {
		t.Errorf("a label that both have: %v (error: %v)", own, err)
	}

	// A pod that goes takes its series along.
	s.mu.Lock()
	s.pods = s.pods[3:]
	s.mu.Unlock()
	at = at.Add(time.Second)
	if _, err := w.Look(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if x, err := w.engine.At(t.Context(), w.store, "x", at); err != nil || len(x) != 3 {
		t.Errorf("x is %v (error: %v)", x, err)
	}
}

// TestNoLab checks that a cluster without a lab and without pods has no targets, and that one that is gone is an error.
func TestNoLab(t *testing.T) {
	w := watcher(t, &server{}, Options{})
	p, err := w.Look(t.Context(), time.Unix(1_800_000_000, 0))
	if err != nil || len(p.Targets) > 0 || len(p.Plots) > 0 || p.Answering() > 0 {
		t.Errorf("%+v (error: %v)", p, err)
	}
	gone, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Look(t.Context(), time.Unix(1_800_000_000, 0)); err == nil {
		t.Error("a cluster that is gone is no error")
	}
}

// TestPlots checks the values of the signals, from the second look on.
func TestPlots(t *testing.T) {
	s := &server{operators: []string{"zundoko", "tomcat"}, told: map[string]string{}}
	w := watcher(t, s, Options{Operator: "zundoko", Columns: 10})
	at := time.Unix(1_800_000_000, 500)
	var p *Picture
	for n := range 90 {
		s.mu.Lock()
		s.told["/apis/operator-lab.dev/v1alpha1/operators/zundoko/metrics"] = fmt.Sprintf(
			"# TYPE controller_runtime_reconcile_total counter\n"+
				"controller_runtime_reconcile_total{controller=\"hikawa\",result=\"success\"} %d\n"+
				"controller_runtime_reconcile_errors_total{controller=\"hikawa\"} 7\nworkqueue_depth{controller=\"hikawa\",name=\"hikawa\"} %d\n", 100+4*n, n)
		s.mu.Unlock()
		var err error
		if p, err = w.Look(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if len(p.Targets) != 1 {
			t.Fatalf("targets: %+v", p.Targets)
		}
		if n > 0 {
			got := map[string]float64{}
			for _, plot := range p.Plots {
				if len(plot.Lines) != 1 || plot.Lines[0].Name != "hikawa" || plot.Lines[0].Labels["operator"] != "zundoko" {
					t.Fatalf("lines of %s: %+v", plot.Name, plot.Lines)
				}
				value, is := plot.Lines[0].Now(at)
				if !is {
					t.Errorf("%s has no value after %d s", plot.Name, n)
				}
				got[plot.Name] = value
			}
			if len(got) != 3 || got["traffic"] < 3.9 || got["traffic"] > 4.1 || got["errors"] != 0 || got["saturation"] != float64(n) {
				t.Fatalf("after %d s: %v", n, got)
			}
		}
		at = at.Add(time.Second)
	}
	points := p.Plots[0].Lines[0].Points
	if len(points) < 9 || len(points) > 12 {
		t.Errorf("%d points in ten columns", len(points))
	}
	if _, err := json.Marshal(p); err != nil {
		t.Error(err)
	}
}

// TestReach checks how far back rules look, and which metrics they need.
func TestReach(t *testing.T) {
	for expr, want := range map[string]time.Duration{
		"x": 0, "x offset 3m": 3 * time.Minute, "rate(x[5m])": 5 * time.Minute, "max_over_time(rate(x[1m])[10m:1m] offset 2m)": 13 * time.Minute,
		"rate(x[5m]) + y offset 7m": 7 * time.Minute,
	} {
		if got := back(expr); got != want {
			t.Errorf("%s looks back %v, want %v", expr, got, want)
		}
	}
	if found, all := names([]string{"rate(a[$window]) / b", "sum(c)"}); all || len(found) != 3 {
		t.Errorf("%v %v", found, all)
	}
	if _, all := names([]string{`{__name__=~"x.*"}`}); !all {
		t.Error("an expression without a name may mean any")
	}
}

// TestFind checks that a rule that looks back is not said to be inactive before enough was read.
func TestFind(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	p := &Picture{At: at, Began: at.Add(-10 * time.Second), Alerts: []RuleState{
		{Name: "Now", State: Inactive},
		{Name: "Back", State: Inactive, Reach: 15 * time.Second},
		{Name: "Fires", State: Firing, Reach: 15 * time.Second},
		{Name: "Fires", State: Pending},
	}}
	for name, want := range map[string]State{"Now": Inactive, "Back": "", "Fires": Firing} {
		if got, err := p.Find(name); got != want || err != nil {
			t.Errorf("%s is %q (error: %v), want %q", name, got, err, want)
		}
	}
	p.Began = at.Add(-15 * time.Second)
	if got, err := p.Find("Back"); got != Inactive || err != nil {
		t.Errorf("after its time it is %q (error: %v)", got, err)
	}
	if _, err := p.Find("Nobody"); err == nil {
		t.Error("there is a rule that is not there")
	}
}
