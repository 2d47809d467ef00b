//go:build go1.23

package trace

import (
	"iter"
	"strconv"
)

// What is particular to one kind of event is its payload: a type here, whose Values are the Values of the event. Only
// this file knows their order, which saved journals have too.

// FaultPayload is the payload of a KindFault event.
type FaultPayload struct {
	// Kind is the kind of the fault, such as [FaultCrash]; empty if it is not known. Detail says more about it.
	Kind, Detail string
	// Of names what was affected, for faults that affect something other than the object of the call. Of a crash it is the
	// time until the operator is started again; of a stale restart the kind that it then sees as it was follows.
	Of []string
}

// Values returns the Values of the event.
func (f FaultPayload) Values() []string { return append([]string{f.Kind, f.Detail}, f.Of...) }

// Fault returns the payload of a KindFault event.
func (e *Event) Fault() FaultPayload {
	if len(e.Values) < 2 {
		return FaultPayload{}
	}
	return FaultPayload{Kind: e.Values[0], Detail: e.Values[1], Of: e.Values[2:]}
}

// WritesPayload is the payload of a KindWrites event.
type WritesPayload struct {
	// Endpoint is the address that was written to.
	Endpoint string
	// Failed is the number of failed writes since the last such event.
	Failed int
	// Gap is how long no write was acknowledged, after an outage; else empty.
	Gap string
}

// Values returns the Values of the event.
func (w WritesPayload) Values() []string {
	values := []string{w.Endpoint, strconv.Itoa(w.Failed)}
	if w.Gap != "" {
		values = append(values, w.Gap)
	}
	return values
}

// Writes returns the payload of a KindWrites event.
func (e *Event) Writes() WritesPayload {
	failed, err := strconv.Atoi(e.value(1))
	if err != nil {
		failed = 0
	}
	return WritesPayload{Endpoint: e.value(0), Failed: max(0, failed), Gap: e.value(2)}
}

// HookPayload is the payload of a KindHook event.
type HookPayload struct {
	// URL is that of the webhook.
	URL string
	// Request and Response are the bodies, without the values of Secrets; Response is empty if there was none.
	Request, Response string
}

// Values returns the Values of the event.
func (h HookPayload) Values() []string { return []string{h.URL, h.Request, h.Response} }

// Hook returns the payload of a KindHook event.
func (e *Event) Hook() HookPayload {
	return HookPayload{URL: e.value(0), Request: e.value(1), Response: e.value(2)}
}

// TrafficValues returns the Values of a KindTraffic event: the URL of the request.
func TrafficValues(url string) []string { return []string{url} }

// URL returns the URL of the request of a KindTraffic event.
func (e *Event) URL() string { return e.value(0) }

// RecorderValues returns the Values of a call with [ViaRecorder]: the type of the Kubernetes Event, Normal or Warning.
func RecorderValues(eventType string) []string { return []string{"type", eventType} }

// EventType returns the type of the Kubernetes Event of a call with [ViaRecorder].
func (e *Event) EventType() string { return e.value(1) }

// Pairs returns the keys and values of a log line.
func (e *Event) Pairs() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for i := 0; i+1 < len(e.Values) && yield(e.Values[i], e.Values[i+1]); i += 2 {
		}
	}
}

// value returns one of the Values; empty if the event has fewer.
func (e *Event) value(i int) string {
	if i < len(e.Values) {
		return e.Values[i]
	}
	return ""
}
