package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// patience limits the wait for a condition. It is long because the machine may be busy.
const patience = 60 * time.Second

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests and then looks for goroutines that the package leaked.
func run(m *testing.M) int {
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	stopSandbox()
	deadline := time.After(10 * time.Second)
	for {
		left := leftGoroutines()
		if left == "" {
			return code
		}
		select {
		case <-deadline:
			fmt.Println("goroutines are left:\n" + left)
			return 1
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// leftGoroutines returns the stacks of the package's goroutines, except for this one.
func leftGoroutines() string {
	buf := make([]byte, 16<<20)
	var left []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "operator-lab/sandbox/fault") && !strings.Contains(stack, "fault_test.leftGoroutines") {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}

// effects records what faults call.
type effects struct {
	mu      sync.Mutex
	crashes []string
	kills   []string
	patches []string
	err     error
	// broken has the breaks and repairs in order; running are the containers that can be killed.
	broken  []string
	running []string
	onTouch func(context.Context, schema.GroupVersionResource, string, string, []byte) error
	onCrash func()
	onAwait func(ctx context.Context, kind, version string)
}

func (e *effects) Crash(operator string, after time.Duration) {
	e.mu.Lock()
	e.crashes = append(e.crashes, fmt.Sprint(operator, " ", after))
	e.mu.Unlock()
	if e.onCrash != nil {
		e.onCrash()
	}
}

func (e *effects) crashed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.crashes)
}

func (e *effects) Kill(program string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.kills = append(e.kills, program)
	}
	return e.err
}

func (e *effects) AwaitDone(ctx context.Context, operator, kind, version string) {
	if e.onAwait != nil {
		e.onAwait(ctx, kind, version)
	}
}

func (e *effects) Break(spec v1alpha1.FaultSpec) ([]string, func() error, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil, nil, e.err
	}
	p, n := spec.Pod, spec.Node
	switch {
	case p != nil && (p.Action == v1alpha1.PodKill || p.Action == v1alpha1.PodOOMKill):
		killed := e.running
		e.running = nil
		if len(killed) == 0 {
			return nil, nil, fault.ErrNobody
		}
		return killed, nil, nil
	case n != nil && n.Action == v1alpha1.NodeRestart:
		e.broken = append(e.broken, "restart")
		return []string{"node-1"}, nil, nil
	}
	e.broken = append(e.broken, "break")
	var of []string
	if n != nil {
		of = []string{"node-1", "node-2"}
	}
	return of, func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.broken = append(e.broken, "repair")
		return e.err
	}, nil
}

// breaks returns the recorded breaks and repairs.
func (e *effects) breaks() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.broken, " ")
}

// run adds running containers.
func (e *effects) run(containers ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = containers
}

// fail makes every call fail with err from now on; nil ends that.
func (e *effects) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

func (e *effects) PatchAsOther(ctx context.Context, r schema.GroupVersionResource, namespace, name string, patch []byte) error {
	if e.onTouch != nil {
		return e.onTouch(ctx, r, namespace, name, patch)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.patches = append(e.patches, fmt.Sprintf("%s %s/%s %s", r.Resource, namespace, name, patch))
	}
	return e.err
}

// server is an API server in memory: it answers a write with the object, and a read with the entry of answers for the
// path.
type server struct {
	mu      sync.Mutex
	seen    []string
	answers map[string]string
	headers http.Header // of the last request
	rv      int
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = req.Header
	line := req.Method + " " + req.URL.Path
	s.seen = append(s.seen, line)
	body := "{}"
	switch text, known := s.answers[line]; {
	case known && text == "":
		return response(req, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`), nil
	case known:
		body = text
	case req.Body != nil:
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = s.stored(raw)
	}
	return response(req, http.StatusOK, body), nil
}

// stored returns the object of the API server's answer.
func (s *server) stored(raw []byte) string {
	var o map[string]any
	if json.Unmarshal(raw, &o) != nil {
		return "{}"
	}
	s.rv++
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		o["metadata"] = meta
	}
	if prefix, _ := meta["generateName"].(string); prefix != "" {
		meta["name"] = fmt.Sprintf("%s%05d", prefix, s.rv)
	}
	meta["resourceVersion"], meta["uid"] = fmt.Sprint(s.rv), "u1"
	out, err := json.Marshal(o)
	if err != nil {
		return "{}"
	}
	return string(out)
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

func response(req *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Request: req, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// bench is a set of faults with one operator, zundoko, in front of a server.
type bench struct {
	testing.TB
	faults   *fault.Faults
	injector *fault.Injector
	journal  *trace.Journal
	effects  *effects
	server   *server
	next     http.RoundTripper
	way      http.RoundTripper
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	b := &bench{TB: tb, journal: trace.New(trace.Options{}), effects: &effects{}, server: &server{answers: map[string]string{}}}
	b.faults = fault.NewFaults(fault.FaultsOptions{
		Journal: b.journal, Seed: 7, Effects: b.effects,
		ReconcileOf: func(context.Context, string) trace.ReconcileRef {
			return trace.ReconcileRef{ID: 4, Controller: "hikawa", Key: trace.Key{Namespace: "default", Name: "sample"}}
		},
	})
	b.next = b.server
	b.live()
	tb.Cleanup(func() { b.faults.Close(); b.injector.Die() })
	return b
}

// live begins a new run of the operator.
func (b *bench) live() {
	b.injector = b.faults.Injector("zundoko")
	b.way = b.injector.Wrap(b.next)
}

func (b *bench) arm(name string, spec v1alpha1.FaultSpec) {
	b.Helper()
	if err := b.faults.Arm(name, spec); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) status(name string) v1alpha1.FaultStatus {
	b.Helper()
	s, ok := b.faults.Status(name)
	if !ok {
		b.Fatalf("there is no fault %s", name)
	}
	return s
}

// wantStatus checks phase, matches and times of a fault, and whether it is done.
func (b *bench) wantStatus(name string, phase v1alpha1.FaultPhase, matched, times int32, done bool) v1alpha1.FaultStatus {
	b.Helper()
	s := b.status(name)
	if s.Phase != phase || s.Matched != matched || s.Times != times || isTrue(s, "Done") != done || isTrue(s, "Injected") != (times > 0) {
		b.Errorf("%s is %s, matched %d, happened %d, conditions %v, message %q; want %s, %d, %d, done %t",
			name, s.Phase, s.Matched, s.Times, s.Conditions, s.Message, phase, matched, times, done)
	}
	return s
}

func isTrue(s v1alpha1.FaultStatus, condition string) bool {
	for _, c := range s.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// request makes a request; what is "METHOD path [content type]".
func (b *bench) request(ctx context.Context, what, body string) *http.Request {
	b.Helper()
	parts := strings.Fields(what)
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, parts[0], "https://api.test"+parts[1], reader)
	if err != nil {
		b.Fatal(err)
	}
	if len(parts) > 2 {
		req.Header.Set("Content-Type", parts[2])
	}
	return req
}

// send sends a request and returns the status of its answer.
func (b *bench) send(what, body string) (code int, text string, err error) {
	b.Helper()
	return b.sendAs(b.Context(), what, body)
}

func (b *bench) sendAs(ctx context.Context, what, body string) (code int, text string, err error) {
	b.Helper()
	resp, err := b.way.RoundTrip(b.request(ctx, what, body))
	if err != nil {
		return 0, "", err
	}
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), errors.Join(err, resp.Body.Close())
}

func (b *bench) must(what, body string) {
	b.Helper()
	if code, text, err := b.send(what, body); err != nil || code != http.StatusOK {
		b.Fatalf("%s: %d %s %v", what, code, text, err)
	}
}

// injected returns the events of faults in the journal.
func (b *bench) injected() []*trace.Event { return b.recorded(trace.KindFault) }

// lost returns the writes that were carried out without an answer, such as "create Song one, rv 1".
func (b *bench) lost() (out []string) {
	for _, e := range b.recorded(trace.KindCall) {
		if e.Lost && e.Actor == "zundoko" && e.Operator == "zundoko" && e.Source == trace.Server && e.Object.UID != "" {
			out = append(out, fmt.Sprintf("%s %s, rv %s, in #%d", e.Verb, e.Object, e.ResourceVersion, e.Reconcile))
		}
	}
	return out
}

func (b *bench) recorded(kind trace.Kind) []*trace.Event {
	var out []*trace.Event
	for _, e := range b.journal.Since(0) {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// reconciling returns a context as a reconciler gets it.
func reconciling(t *testing.T) context.Context {
	t.Helper()
	got := make(chan context.Context, 1)
	c, err := controller.NewUnmanaged("injector", controller.Options{
		SkipNameValidation: new(true), Logger: logr.Discard(),
		Reconciler: reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
			got <- context.WithoutCancel(ctx)
			return ctrl.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	one := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: "sample"}})
		return nil
	})
	if err := c.Watch(one); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	inner := <-got
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return inner
}

const (
	songs = "/apis/music.example.com/v1/namespaces/default/songs"
	maps  = "/api/v1/namespaces/default/configmaps"
)

// song is the body of an object.
func song(name string, fields string) string {
	return fmt.Sprintf(`{"apiVersion":"music.example.com/v1","kind":"Song","metadata":{"name":%q,"namespace":"default"}%s}`, name, fields)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
