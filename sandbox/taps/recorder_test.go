package taps_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// answer is what a fake API server answers a request with: a status and a body, JSON unless it begins otherwise.
type answer struct {
	code int
	body string
}

// behind is a program behind a recorder. Its API server gives the answers by method and path; else it answers with the
// request's body.
type behind struct {
	*testing.T
	taps    *taps.Taps
	journal *trace.Journal
	way     http.RoundTripper
	answers map[string]answer
	sent    chan string // the requests that arrived
	during  func()      // called while a PUT is under way; nil for nothing
	of      string      // the type of the answers' content
}

func newBehind(t *testing.T) *behind {
	t.Helper()
	b := &behind{T: t, journal: trace.New(trace.Options{}), answers: map[string]answer{}, sent: make(chan string, 99), of: "application/json"}
	b.taps = taps.New(b.journal, taps.Options{Operator: "pyop"})
	b.live()
	sandboxtest.LogJournal(t, b.journal)
	return b
}

// live begins a run.
func (b *behind) live() {
	b.way = b.taps.Recorder(roundTrip(func(req *http.Request) (*http.Response, error) {
		what := req.Method + " " + req.URL.Path
		b.sent <- what
		if b.during != nil && req.Method == http.MethodPut {
			b.during()
		}
		a, known := b.answers[what]
		if !known && req.Body != nil {
			raw, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			a.body = string(raw)
		}
		if a.body == "lost" {
			return nil, io.ErrUnexpectedEOF
		}
		if a.code == 0 {
			a.code = http.StatusOK
		}
		return &http.Response{
			StatusCode: a.code, Status: http.StatusText(a.code), Request: req, Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(a.body))),
			Header: http.Header{"Content-Type": {b.of}, "Date": {"Mon, 23 Nov 2026 10:00:00 GMT"}},
		}, nil
	}), nil)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// do sends a request as a proxy does, without GetBody, and returns the body that the program gets.
func (b *behind) do(ctx context.Context, method, url, body string) (string, error) {
	b.Helper()
	req := httptest.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := b.way.RoundTrip(req)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(resp.Body)
	return string(raw), errors.Join(err, resp.Body.Close())
}

func (b *behind) must(method, url, body string) string {
	b.Helper()
	got, err := b.do(b.Context(), method, url, body)
	if err != nil {
		b.Fatal(err)
	}
	return got
}

// story returns what the journal says since it was last asked, one line an event.
func (b *behind) story(after int64) string {
	var out strings.Builder
	for _, e := range b.journal.Since(after) {
		fmt.Fprintf(&out, "%s %s %s", e.Kind, e.Verb, e.Object)
		for _, word := range []struct {
			is   bool
			text string
		}{
			{e.ResourceVersion != "", "rv " + e.ResourceVersion},
			{e.Count > 0, fmt.Sprint(e.Count, " items")},
			{e.Initial, "initial"},
			{e.NoOp, "no change"},
			{e.Cause > 0, fmt.Sprint("because of ", e.Cause)},
			{e.Before != nil, "before " + string(e.Before)},
			{e.After != nil, "after " + string(e.After)},
			{e.Reason != "", e.Reason},
			{e.Error != "", "error " + e.Error},
			{e.Via != trace.ViaGate, "via " + e.Via},
		} {
			if word.is {
				out.WriteString(", " + word.text)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (b *behind) want(after int64, want ...string) {
	b.Helper()
	if got := b.story(after); got != strings.Join(want, "\n")+"\n" {
		b.Errorf("the journal has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

const maps = "/api/v1/namespaces/default/configmaps"

// m is a ConfigMap.
func m(rv, word string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"default","uid":"u","resourceVersion":"` + rv + `"},"data":{"word":"` + word + `"}}`
}

// TestRecorderCalls checks what is recorded of calls, and that the program gets every answer whole.
func TestRecorderCalls(t *testing.T) {
	b := newBehind(t)
	b.answers["GET "+maps+"/m"] = answer{body: m("5", "Zun")}
	b.answers["PUT "+maps+"/m"] = answer{body: m("6", "Doko")}
	b.answers["PATCH "+maps+"/m"] = answer{body: m("6", "Doko")}
	b.answers["GET "+maps+"/none"] = answer{404, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no none","reason":"NotFound","code":404}`}
	b.answers["DELETE "+maps+"/m"] = answer{body: `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"m","uid":"u"}}`}
	b.must("GET", maps+"/none", "")
	b.must("GET", maps+"/m", "")
	if got := b.must("PUT", maps+"/m", m("5", "Doko")); got != m("6", "Doko") {
		t.Errorf("the program got %s", got)
	}
	b.must("PATCH", maps+"/m", `{"data":{"word":"Doko"}}`)
	b.answers["PUT "+maps+"/m"] = answer{409, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it changed","reason":"Conflict","code":409}`}
	b.must("PUT", maps+"/m", m("5", "Kiyoshi"))
	b.must("DELETE", maps+"/m", "")
	b.answers["PUT "+maps+"/m"] = answer{body: "lost"}
	if _, err := b.do(t.Context(), "PUT", maps+"/m", m("5", "Zun")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	b.must("POST", maps+"?dryRun=All", m("", "Zun"))
	b.want(0,
		"call get ConfigMap none, NotFound, error no none",
		"call get ConfigMap m, rv 5",
		"call update ConfigMap m, rv 6, before "+m("5", "Zun")+", after "+m("6", "Doko"),
		"call patch ConfigMap m, rv 6, no change, before "+m("6", "Doko")+", after "+m("6", "Doko"),
		"call update ConfigMap m, before "+m("6", "Doko")+", after "+m("5", "Kiyoshi")+", Conflict, error it changed",
		"call delete ConfigMap m, before "+m("6", "Doko"),
		"call update ConfigMap m, before "+m("6", "Doko")+", after "+m("5", "Zun")+", error unexpected EOF",
		"call create ConfigMap m, before "+m("6", "Doko")+", after "+m("", "Zun")+", via dry-run",
	)
	for _, e := range b.journal.Since(0) {
		if e.Operator != "pyop" || e.Source != trace.Server || e.Controller != "" || e.Reconcile != 0 {
			t.Errorf("%+v", e)
		}
	}
}

// TestRecorderLongBody checks that a body that is too long to be recorded passes whole.
func TestRecorderLongBody(t *testing.T) {
	b := newBehind(t)
	long := m("5", strings.Repeat("la", 2<<20))
	if got := b.must("PUT", maps+"/m", long); got != long {
		t.Errorf("%d of %d bytes came back", len(got), len(long))
	}
	b.want(0, "call update ConfigMap m")
}

// TestRecorderLeavesOut checks that what is no work of the program is passed but not recorded, that contents of streams
// are not waited for, and that no secret gets into the journal.
func TestRecorderLeavesOut(t *testing.T) {
	b := newBehind(t)
	for _, what := range []string{
		"GET /api/v1", "GET /apis", "GET /version", "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l",
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST /apis/authentication.k8s.io/v1/tokenreviews",
		"GET /api/v1/events", "PATCH /api/v1/namespaces/default/events/e",
	} {
		method, path, _ := strings.Cut(what, " ")
		b.must(method, path, `{"spec":{"token":"hush"}}`)
	}
	if got := b.story(0); got != "" {
		t.Error(got)
	}
	b.must("POST", "/api/v1/namespaces/default/serviceaccounts/s/token", `{"kind":"TokenRequest","status":{"token":"hush"}}`)
	b.must("POST", "/api/v1/namespaces/default/pods/p/exec", "hush")
	b.must("GET", "/api/v1/namespaces/default/pods/p/log", "hush")
	b.must("POST", "/api/v1/namespaces/default/services/s/proxy/x", m("1", "hush"))
	b.must("PATCH", "/api/v1/namespaces/default/secrets/s", `{"kind":"Secret","apiVersion":"v1","data":{"p":"aHVzaA=="}}`)
	b.answers["GET /api/v1/namespaces/default/secrets"] = answer{body: `{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"s","uid":"u","resourceVersion":"1"},"data":{"p":"aHVzaA=="}}]}`}
	b.must("GET", "/api/v1/namespaces/default/secrets", "")
	b.answers["PATCH /api/v1/namespaces/default/secrets/s"] = answer{code: 403}
	b.must("PATCH", "/api/v1/namespaces/default/secrets/s", `{"data":{"p":"aHVzaA=="}}`)
	if got := b.story(0); strings.Contains(got, "hush") || strings.Contains(got, "aHVz") || strings.Count(got, "\n") != 8 {
		t.Error(got)
	}
}

// TestRecorderLists checks that the first list of a collection becomes initial events, page by page, in any encoding.
func TestRecorderLists(t *testing.T) {
	b := newBehind(t)
	item := func(name string) string {
		return `{"metadata":{"name":"` + name + `","uid":"` + name + `","resourceVersion":"1"}}`
	}
	list := func(more string, items ...string) answer {
		return answer{body: `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"` + more + `"},"items":[` + strings.Join(items, ",") + `]}`}
	}
	b.answers["GET "+maps] = list("x", item("a"))
	b.must("GET", maps, "")
	b.answers["GET "+maps] = list("", item("b"))
	b.must("GET", maps+"?continue=x", "")
	b.answers["GET "+maps] = list("", item("a"), item("b"), item("c"))
	b.must("GET", maps, "")
	of := func(name string) string { return `{"apiVersion":"v1","kind":"ConfigMap",` + item(name)[1:] }
	b.want(0,
		"watch ADDED ConfigMap a, rv 1, initial, after "+of("a"), "call list ConfigMap, 1 items",
		"watch ADDED ConfigMap b, rv 1, initial, after "+of("b"), "call list ConfigMap, 1 items",
		"call list ConfigMap, 3 items")
	last := b.journal.Stats().Last
	b.live() // lists anew
	b.answers["GET "+maps] = answer{body: `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + item("a")[1:] + `}]}`}
	b.must("GET", maps, "")
	if got := b.story(last); !strings.HasPrefix(got, "watch ADDED ConfigMap a, rv 1, initial") || !strings.Contains(got, "call list ConfigMap, 1 items") {
		t.Error(got)
	}
	last = b.journal.Stats().Last
	pods := &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", ResourceVersion: "3"}}}}
	pods.APIVersion, pods.Kind = "v1", "PodList"
	var raw strings.Builder
	if err := protobuf.NewSerializer(scheme(), scheme()).Encode(pods, &raw); err != nil {
		t.Fatal(err)
	}
	b.answers["GET /api/v1/pods"] = answer{body: raw.String()}
	if got := b.must("GET", "/api/v1/pods", ""); got != raw.String() {
		t.Error("the program got another list")
	}
	if got := b.story(last); !strings.HasPrefix(got, "watch ADDED Pod p, rv 3, initial") || !strings.Contains(got, "call list Pod, 1 items") {
		t.Error(got)
	}
}

// frame is a watch event.
func frame(verb, object string) string { return `{"type":"` + verb + `","object":` + object + "}\n" }

// made is m with a time of creation.
func made(at, rv, word string) string {
	return strings.Replace(m(rv, word), `"uid"`, `"creationTimestamp":"`+at+`","uid"`, 1)
}

// TestRecorderWatches checks that deliveries are recorded with their causes, whatever pieces they come in, and which of
// them are the state that the watch begins with.
func TestRecorderWatches(t *testing.T) {
	old, young := "2026-11-23T09:59:59Z", "2026-11-23T10:00:01Z"
	bookmark := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}`
	broken := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}`
	b := newBehind(t)
	b.answers["PUT "+maps+"/m"] = answer{body: m("9", "Doko")}
	b.must("PUT", maps+"/m", m("8", "Doko"))
	b.answers["GET "+maps] = answer{body: frame("ADDED", m("7", "Zun")) + frame("BOOKMARK", bookmark) +
		"\n" + strings.ReplaceAll(frame("MODIFIED", m("9", "Doko")), ",", ",\n") + frame("DELETED", m("9", "Doko")) + frame("ERROR", broken)}
	if got := b.must("GET", maps+"?watch=true&sendInitialEvents=true", ""); got != b.answers["GET "+maps].body {
		t.Errorf("the program got %s", got)
	}
	b.want(1, "call watch ConfigMap",
		"watch ADDED ConfigMap m, rv 7, initial, before "+m("9", "Doko")+", after "+m("7", "Zun"),
		"watch MODIFIED ConfigMap m, rv 9, because of 1, after "+m("9", "Doko"),
		"watch DELETED ConfigMap m, rv 9, before "+m("9", "Doko")+", after "+m("9", "Doko"),
		"call watch ConfigMap, Expired, error too old")
	for query, initial := range map[string]string{"": "true false", "&resourceVersion=0": "true false", "&resourceVersion=7": "false false"} {
		b.live()
		last := b.journal.Stats().Last
		b.answers["GET "+maps] = answer{body: frame("ADDED", made(old, "17", "Zun")) + frame("ADDED", made(young, "18", "Zun"))}
		b.must("GET", maps+"?watch=1"+query, "")
		e := b.journal.Since(last)
		if got := fmt.Sprint(e[1].Initial, e[2].Initial); got != initial {
			t.Errorf("%q: initial is %s", query, got)
		}
	}
	b.answers["GET "+maps] = answer{403, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no right","reason":"Forbidden","code":403}`}
	last := b.journal.Stats().Last
	b.must("GET", maps+"?watch=true", "")
	b.want(last, "call watch ConfigMap, Forbidden, error no right")
}

// TestRecorderBinaryWatch checks that deliveries in protobuf are recorded too, whatever pieces they come in.
func TestRecorderBinaryWatch(t *testing.T) {
	b := newBehind(t)
	b.of = "application/vnd.kubernetes.protobuf;stream=watch"
	var frames strings.Builder
	for _, e := range []struct{ verb, rv string }{{"ADDED", "7"}, {"BOOKMARK", "7"}, {"MODIFIED", "8"}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", ResourceVersion: e.rv}}
		pod.APIVersion, pod.Kind = "v1", "Pod"
		if e.verb == "BOOKMARK" {
			pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		}
		var object bytes.Buffer
		if err := protobuf.NewSerializer(scheme(), scheme()).Encode(pod, &object); err != nil {
			t.Fatal(err)
		}
		raw, err := (&metav1.WatchEvent{Type: e.verb, Object: runtime.RawExtension{Raw: object.Bytes()}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		frames.Write(binary.BigEndian.AppendUint32(nil, uint32(len(raw))))
		frames.Write(raw)
	}
	b.answers["GET /api/v1/pods"] = answer{body: frames.String()}
	if got := b.must("GET", "/api/v1/pods?watch=true&sendInitialEvents=true", ""); got != frames.String() {
		t.Error("the program got something else")
	}
	got := b.story(1)
	if !strings.HasPrefix(got, "watch ADDED Pod p, rv 7, initial") || !strings.Contains(got, "\nwatch MODIFIED Pod p, rv 8, before") || strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
}

// TestRecorderReadBeforeWatch checks that a change that the program read before its watch delivered it shows all the
// same.
func TestRecorderReadBeforeWatch(t *testing.T) {
	b := newBehind(t)
	b.answers["GET "+maps+"/m"] = answer{body: m("5", "Zun")}
	b.must("GET", maps+"/m", "")
	b.answers["GET "+maps+"/m"] = answer{body: m("6", "Doko")}
	b.must("GET", maps+"/m", "")
	b.answers["GET "+maps] = answer{body: frame("MODIFIED", m("6", "Doko"))}
	b.must("GET", maps+"?watch=true&resourceVersion=5", "")
	b.answers["GET "+maps] = answer{body: `{"kind":"ConfigMapList","apiVersion":"v1","items":[` + m("6", "Doko") + `]}`}
	b.must("GET", maps, "") // the program knows it already
	b.want(3, "watch MODIFIED ConfigMap m, rv 6, before "+m("5", "Zun")+", after "+m("6", "Doko"), "call list ConfigMap, 1 items")
}

// TestRecorderEventFirst checks that nothing waits for the answer to a write, and that its watch event is known by it.
func TestRecorderEventFirst(t *testing.T) {
	b := newBehind(t)
	b.answers["GET "+maps] = answer{body: frame("MODIFIED", m("6", "Doko"))}
	b.answers["PUT "+maps+"/m"] = answer{body: m("6", "Doko")}
	b.during = func() { // the event is faster than the answer
		b.during = nil
		if _, err := b.do(context.WithoutCancel(t.Context()), "GET", maps+"?watch=true&resourceVersion=5", ""); err != nil {
			t.Error(err)
		}
	}
	b.must("PUT", maps+"/m", m("5", "Doko"))
	b.want(1, "watch MODIFIED ConfigMap m, rv 6, after "+m("6", "Doko"), "call update ConfigMap m, rv 6, after "+m("6", "Doko"))
	timeline := trace.NewTimeline(b.journal)
	timeline.Update()
	if write := timeline.Tip().Cause(b.journal.Get(2)); write == nil || write.Seq != 3 {
		t.Errorf("the event is caused by %+v", write)
	}
}

// TestRecorderHolds checks that writes are held and requests wait, what passes nevertheless, and in which order they go on.
func TestRecorderHolds(t *testing.T) {
	b := newBehind(t)
	results := make(chan error, 9)
	begin := func(ctx context.Context, method, url, body string) {
		go func() { _, err := b.do(ctx, method, url, body); results <- err }()
	}
	arrived := func(want string) {
		t.Helper()
		if got := <-b.sent; got != want {
			t.Errorf("%s arrived, want %s", got, want)
		}
	}
	b.taps.HoldWrites()
	begin(t.Context(), "PUT", maps+"/m", m("5", "Zun"))
	sandboxtest.Eventually(t, "the held write", func() bool { return b.taps.HeldWrites() == 1 })
	b.must("GET", maps+"/x", "")
	arrived("GET " + maps + "/x")
	b.want(1, "hold update ConfigMap m, after "+m("5", "Zun"), "call get ConfigMap x")
	b.taps.StepCall() // pauses too
	arrived("PUT " + maps + "/m")
	if err := <-results; err != nil {
		t.Error(err)
	}
	if e := b.journal.Since(0); e[len(e)-1].Cause != 2 {
		t.Errorf("%+v", e[len(e)-1])
	}
	b.taps.Release()
	for _, name := range []string{"1", "2"} {
		begin(t.Context(), "GET", maps+"/"+name, "")
		sandboxtest.Eventually(t, "the waiting request", func() bool { return fmt.Sprint(taps.Waiting(b.taps)) == name })
	}
	for _, url := range []string{"/apis/coordination.k8s.io/v1/namespaces/default/leases/l", "/api/v1/events", maps + "?watch=true", "/api/v1"} {
		b.must("GET", url, "")
		<-b.sent
	}
	gone, cancel := context.WithCancel(t.Context())
	begin(gone, "POST", maps, m("", "Zun"))
	sandboxtest.Eventually(t, "the waiting write", func() bool { return taps.Waiting(b.taps) == 3 })
	cancel()
	if err := <-results; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "never sent") {
		t.Error(err)
	}
	b.taps.Step()
	arrived("GET " + maps + "/1")
	b.taps.Resume()
	arrived("GET " + maps + "/2")
	var waited []string
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for _, e := range b.journal.Since(0) {
		if hold := b.journal.Get(e.Cause); hold != nil && hold.Reason == trace.ReasonPaused && e.Kind == trace.KindCall {
			waited = append(waited, hold.Verb+" "+e.Object.Name)
		}
	}
	slices.Sort(waited) // the answer to the second may come before that to the first
	if strings.Join(waited, ", ") != "get 1, get 2" {
		t.Errorf("the journal says that these waited: %q", waited)
	}
	b.taps.Pause()
	b.taps.Step() // for the next one
	b.must("GET", maps+"/3", "")
}

// TestRecorderServing checks that AwaitServing waits for the first request of a run.
func TestRecorderServing(t *testing.T) {
	b := newBehind(t)
	b.must("GET", "/api", "")
	if err := b.taps.AwaitServing(t.Context()); err != nil {
		t.Error(err)
	}
	b.live()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := b.taps.AwaitServing(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// FuzzRecorder checks that no answer breaks the recorder, and that the program gets it unchanged.
func FuzzRecorder(f *testing.F) {
	for _, body := range []string{
		"", "{}", "{", "null", "\n\n", "k8s\x00", `{"kind":"Table","rows":[{}]}`, `{"kind":"XList","items":[{},null,1]}`, m("1", "x"),
		frame("ADDED", m("1", "x")) + frame("ADDED", "null"), frame("ERROR", "{}"), frame("ADDED", `{"kind":"Table"}`), `{"items":[{"metadata":{"name":"a"}}]}`,
		`{"kind":"SecretList","items":[{"data":1}]}`, "\x00\x00\x00\x04\x0a\x02AB", "\x00\x00\x00\x00\xff\xff\xff\xff",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		b := newBehind(t)
		b.answers["GET "+maps], b.answers["GET "+maps+"/m"], b.answers["POST "+maps] = answer{body: body}, answer{body: body}, answer{body: body}
		if body == "lost" {
			return
		}
		for _, url := range []string{maps, maps + "?watch=true", maps + "/m"} {
			if got := b.must("GET", url, ""); got != body {
				t.Errorf("GET %s: %q became %q", url, body, got)
			}
		}
		if got := b.must("POST", maps, body); got != body {
			t.Errorf("POST: %q became %q", body, got)
		}
		b.of = "application/vnd.kubernetes.protobuf;stream=watch"
		if got := b.must("GET", maps+"?watch=true", ""); got != body {
			t.Errorf("a watch in protobuf: %q became %q", body, got)
		}
	})
}
