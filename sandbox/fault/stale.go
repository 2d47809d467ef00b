package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// view is an older view of a resource. It never changes: [Faults.show] makes a new one.
type view struct {
	of       *fault
	operator string
	resource schema.GroupResource
	kind     string
	// revision is the newest that the operator sees.
	revision uint64
	// shown says that the operator sees it; else it does after the restart.
	shown bool
	over  chan struct{} // closed when it is shown no more
	// listed is done when the operator has got a list of it: what is for a time after a restart counts from then.
	listed *sync.Once
}

// gone is the event that ends a watch whose revision the API server has no more.
const gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// watches reports whether the fault looks at watch events, not at calls.
func (x *fault) watches() bool {
	return x.spec.Watch != nil || x.spec.Stale != nil && slices.Contains(eventVerbs, x.verbs[0])
}

// isStale reports whether a stale fault shows an older view, or will after a restart.
func (x *fault) isStale() bool {
	x.set.mu.Lock()
	defer x.set.mu.Unlock()
	return x.view != nil
}

// isBehind reports whether a stale fault is to restart the operator now.
func (x *fault) isBehind() bool {
	x.set.mu.Lock()
	defer x.set.mu.Unlock()
	return x.view != nil && !x.view.shown && !x.ended()
}

// staleAt reports whether a call is the write after an event, at which a stale fault restarts the operator.
func (x *fault) staleAt(c *call, operator string) bool {
	x.set.mu.Lock()
	defer x.set.mu.Unlock()
	return x.view != nil && !x.view.shown && x.view.operator == operator && trace.IsWriteVerb(c.verb)
}

// behindEvent makes a view of what was before a watch event, and shows it unless the operator is to be restarted.
func (x *fault) behindEvent(resource schema.GroupResource, e trace.Event) {
	version, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
	if err != nil || version == 0 {
		x.set.failed(x, e, fmt.Errorf("resourceVersion %q has none before it", e.ResourceVersion))
		return
	}
	x.look(&view{operator: e.Operator, resource: resource, kind: e.Object.Kind, revision: version - 1}, e)
}

// fallBehind makes a view of what is before a write is sent, and shows it unless the operator is to be restarted.
func (t *transport) fallBehind(c *call, s *injection) {
	f := t.injector.faults
	if s.fault.isStale() {
		return
	}
	s.happened = true
	e := t.injector.callEvent(c, &s.matcher)
	version, err := t.revision(c.req, c.Target)
	if err != nil {
		f.failed(s.fault, e, err)
		return
	}
	s.fault.look(&view{operator: t.injector.operator, resource: c.GroupResource(), kind: e.Object.Kind, revision: version}, e)
}

// revision asks for the newest revision of the resource of a request.
func (t *transport) revision(req *http.Request, of apirequest.Target) (uint64, error) {
	list, err := t.ask(req.Context(), req, of.Path(of.Namespace), url.Values{"limit": {"1"}})
	if err == nil {
		version, _ := fieldPath{"metadata", "resourceVersion"}.of(list).(string)
		var parsed uint64
		if parsed, err = strconv.ParseUint(version, 10, 64); err == nil {
			return parsed, nil
		}
	}
	return 0, fmt.Errorf("not known what %s was before: %w", of.Resource, err)
}

// look gives a fault its view.
func (x *fault) look(v *view, e trace.Event) {
	x.set.mu.Lock()
	v.of, v.over, v.listed = x, make(chan struct{}), &sync.Once{}
	x.view = v
	x.set.publishLocked()
	x.set.mu.Unlock()
	if !x.spec.Stale.Restart {
		x.show(e)
	}
}

// show shows the view of a fault until it is released, or its time is over.
func (x *fault) show(e trace.Event) {
	x.set.mu.Lock()
	shown := *x.view
	shown.shown = true
	x.view = &shown
	x.set.publishLocked()
	x.set.mu.Unlock()
	effect := &effect{repair: sync.OnceValue(func() error { x.hide(&shown); return nil })}
	if x.spec.Stale.Restart {
		effect.grace = listPatience
	}
	x.keep(effect)
	x.set.happened(x, e)
}

// listPatience is how long an operator may take to start again, and to list, before the time that it is shown an older view counts.
const listPatience = 10 * time.Second

// counts begins to count the time of a view when it is listed.
func (v *view) counts() {
	v.listed.Do(func() {
		x := v.of
		x.set.mu.Lock()
		defer x.set.mu.Unlock()
		if x.effect != nil && x.effect.timer != nil && x.effect.grace > 0 {
			x.effect.timer.Reset(x.spec.Stale.For.Duration)
		}
	})
}

// hide ends a view: what was held up is delivered, or listed.
func (x *fault) hide(v *view) {
	x.set.mu.Lock()
	x.view = nil
	x.set.publishLocked()
	x.set.mu.Unlock()
	x.set.options.Journal.Append(trace.Event{
		Kind: trace.KindFault, Actor: Actor, Operator: v.operator, Reason: x.name, Object: trace.Ref{Kind: v.kind},
		Message: v.operator + " sees " + v.kind + " as it is", Values: trace.FaultPayload{Kind: trace.FaultStale, Detail: "Over"}.Values(),
	})
	close(v.over)
}

// viewOf returns the older view that answers a list or a watch; nil if there is none.
func (in *Injector) viewOf(armed *armed, req *http.Request) *view {
	if len(armed.views) == 0 || req.Method != http.MethodGet {
		return nil
	}
	if outside, _ := req.Context().Value(outsideKey{}).(bool); outside {
		return nil
	}
	t, ok := apirequest.Parse(req.URL.Path)
	if !ok || t.Name != "" || exempt(t) {
		return nil
	}
	return in.viewOfResource(armed, t.GroupResource())
}

func (in *Injector) viewOfResource(armed *armed, resource schema.GroupResource) *view {
	for _, v := range armed.views {
		if v.operator == in.operator && v.resource == resource {
			return v
		}
	}
	return nil
}

// allowed reports whether a list or watch may be answered with what was: nothing that is newer was asked for. A list
// without a resourceVersion asks for the newest; initial events of a watch are an informer's, whatever they ask for.
func (v *view) allowed(query url.Values) bool {
	from := query.Get("resourceVersion")
	if from == "" {
		return query.Get("sendInitialEvents") == "true"
	}
	version, err := strconv.ParseUint(from, 10, 64)
	return err == nil && version <= v.revision
}

// list returns a request for the list as it was.
func (v *view) list(req *http.Request) *http.Request {
	query := req.URL.Query()
	query.Set("resourceVersion", strconv.FormatUint(v.revision, 10))
	query.Set("resourceVersionMatch", "Exact")
	return withQuery(req, query)
}

func withQuery(req *http.Request, query url.Values) *http.Request {
	out := req.Clone(req.Context())
	out.URL.RawQuery = query.Encode()
	return out
}

// initialEvents returns the initial events of a watch that asks for them while it is shown an older view, and the watch
// that follows them. The API server itself begins a watch with nothing older than its cache.
func (t *transport) initialEvents(req *http.Request) (string, *http.Request, error) {
	v := t.injector.viewOf(t.injector.faults.armed.Load(), req)
	query := req.URL.Query()
	if v == nil || query.Get("sendInitialEvents") != "true" || !v.allowed(query) {
		return "", req, nil
	}
	for _, name := range []string{"sendInitialEvents", "resourceVersionMatch"} {
		query.Del(name)
	}
	v.counts()
	query.Set("resourceVersion", strconv.FormatUint(v.revision, 10))
	follows := withQuery(req, query)
	for _, name := range []string{"watch", "allowWatchBookmarks", "timeoutSeconds", "timeout"} {
		query.Del(name)
	}
	resp, err := t.next.RoundTrip(v.list(withQuery(req, query)))
	if err != nil {
		return "", nil, err
	}
	defer drop(resp)
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", nil, fmt.Errorf("list what was before: %s %w", resp.Status, err)
	}
	events, err := v.added(raw)
	return events, follows, err
}

// added returns a list as the events that a watch begins with.
func (v *view) added(list []byte) (string, error) {
	var of struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if err := json.Unmarshal(list, &of); err != nil {
		return "", fmt.Errorf("list what was before: %w", err)
	}
	var out strings.Builder
	kind := strings.TrimSuffix(of.Kind, "List")
	for _, item := range of.Items {
		var h head
		if err := json.Unmarshal(item, &h); err != nil {
			return "", fmt.Errorf("list what was before: %w", err)
		}
		text := string(item)
		if h.Kind == "" { // in a list it may be left out
			text = fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, kind, of.APIVersion) + strings.TrimPrefix(text, "{")
		}
		out.WriteString(`{"type":"ADDED","object":` + text + "}\n")
	}
	fmt.Fprintf(&out, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","annotations":{%s:"true"}}}}`+"\n",
		kind, of.APIVersion, v.revision, initialEnd)
	return out.String(), nil
}

// behind are the events that a stream held up, and delivers one after the other, each when the operators have dealt with the one
// before: in a burst it would be up to chance which of the states between an operator sees.
type behind struct {
	newest uint64    // the newest of them; 0: there are none
	last   string    // the version of the one that was delivered last
	until  time.Time // the rest is delivered at once then
}

// behindPatience limits how long an operator may take to deal with all events that were held up.
const behindPatience = 1500 * time.Millisecond

// catchUp waits before an event of that version until the operators have dealt with the one before, if that was held up, too.
func (s *stream) catchUp(version uint64, e *event) {
	if s.behind.newest < version {
		s.behind = behind{}
		return
	}
	s.dealtWith(s.behind.last, e, s.behind.until)
	s.behind.last = e.Object.Metadata.ResourceVersion
}

// dealtWith waits before an event until the operators have dealt with the one of a version, or, without one, with what they know.
func (s *stream) dealtWith(version string, before *event, until time.Time) {
	ctx, cancel := context.WithDeadline(s.ctx, until)
	defer cancel()
	go func() {
		select {
		case <-s.ended:
		case <-s.injector.dead:
		case <-ctx.Done():
		}
		cancel()
	}()
	kind := orElse(s.injector.faults.kind(s.GroupResource()), before.Object.Kind)
	s.injector.faults.options.Effects.AwaitDone(ctx, s.injector.operator, kind, version)
}

// await blocks while an event is newer than what the operator is to see, and reports whether the operator gets it then.
func (s *stream) await(e *event) bool {
	f := s.injector.faults
	version, err := strconv.ParseUint(e.Object.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return true
	}
	s.catchUp(version, e)
	v := s.injector.viewOfResource(f.armed.Load(), s.GroupResource())
	if v == nil || version <= v.revision {
		return true
	}
	f.hold(v.of, 1)
	defer f.hold(v.of, -1)
	select {
	case <-v.over:
	case <-s.ended:
		return true
	case <-s.injector.dead:
		return true
	case <-s.ctx.Done():
		s.end(s.ctx.Err())
		return true
	}
	until := time.Now().Add(behindPatience)
	s.dealtWith("", e, until)
	if v.of.spec.Stale.Relist {
		s.tail, s.last = gone, true
		return false
	}
	if newest, err := s.transport.revision(s.req, s.Target); err == nil {
		s.behind = behind{newest: newest, last: e.Object.Metadata.ResourceVersion, until: until}
	}
	return true
}
