//go:build go1.23

package taps

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// HookCall is a webhook that an operator has asked what should be there.
type HookCall struct {
	// Name is the hook's name, such as sync.
	Name string
	// URL is where it is.
	URL string
	// Object is what it was asked about.
	Object *unstructured.Unstructured
	// Request and Response are the bodies.
	Request, Response []byte
	// Observed and Desired are the objects that are there and those that should be, by kind and name. Desired is nil if the
	// hook did not say.
	Observed, Desired []*unstructured.Unstructured
	// DesiredStatus is the status that Object should have; nil if the hook did not say.
	DesiredStatus map[string]any
	// Status is that of HTTP, Took the time until the answer, and Err what is wrong with it.
	Status int
	Took   time.Duration
	Err    error
}

// mostHookText is how much of a body that is no JSON is recorded.
const mostHookText = 4 << 10

// Hook records a webhook that was asked in a reconcile. The values of Secrets do not get into the journal.
func (t *Taps) Hook(ctx context.Context, call HookCall) {
	r := t.ReconcileOf(ctx)
	e := trace.Event{
		Kind: trace.KindHook, Verb: call.Name, Object: reference(call.Object, call.Object.GroupVersionKind()),
		Controller: r.Controller, Key: r.Key, Reconcile: r.ID, Status: call.Status, Duration: call.Took,
		Values: trace.HookPayload{URL: call.URL, Request: hookBody(call.Request), Response: hookBody(call.Response)}.Values(),
	}
	if call.Err != nil {
		e.Error = call.Err.Error()
	} else if call.Observed != nil || call.Desired != nil {
		e.Before, e.After = hookChange(call)
	}
	t.append(e)
}

// hookChange returns what is there and what should be. Of what is there it has the fields that are wanted, since an API
// server adds others.
func hookChange(call HookCall) (before, after json.RawMessage) {
	desired, observed := map[string]any{}, map[string]any{}
	for _, u := range call.Desired {
		desired[hookName(u, call.Object)] = hookObject(u)
	}
	for _, u := range call.Observed {
		wanted, is := desired[hookName(u, call.Object)]
		if !is {
			wanted = map[string]any{"apiVersion": "", "kind": "", "metadata": map[string]any{"name": ""}}
		}
		observed[hookName(u, call.Object)] = fieldsOf(hookObject(u), wanted)
	}
	was, wanted := map[string]any{"children": observed}, map[string]any{"children": desired}
	if call.DesiredStatus != nil {
		now, _, _ := unstructured.NestedMap(call.Object.Object, "status")
		withoutOwn(now, call.DesiredStatus)
		was["status"], wanted["status"] = now, call.DesiredStatus
	}
	return marshalled(was), marshalled(wanted)
}

// withoutOwn takes away from a status what metacontroller adds to each that is answered: the generation, and the condition of a
// rolling update.
func withoutOwn(status, answered map[string]any) {
	if _, is := answered["observedGeneration"]; !is {
		delete(status, "observedGeneration")
	}
	isUpdated := func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == "Updated"
	}
	conditions, _ := status["conditions"].([]any)
	said, _ := answered["conditions"].([]any)
	if !slices.ContainsFunc(conditions, isUpdated) || slices.ContainsFunc(said, isUpdated) {
		return
	}
	if status["conditions"] = slices.DeleteFunc(conditions, isUpdated); len(conditions) == 1 && said == nil {
		delete(status, "conditions")
	}
}

func marshalled(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// hookName names a child, with its namespace if that is not the one of the object that was asked about.
func hookName(u, about *unstructured.Unstructured) string {
	name := u.GetName()
	if ns := u.GetNamespace(); ns != "" && ns != about.GetNamespace() {
		name = ns + "/" + name
	}
	return u.GetKind() + " " + name
}

// hookObject returns the fields of an object as the journal has them.
func hookObject(u *unstructured.Unstructured) (fields any) {
	if json.Unmarshal(encode(u, u.GroupVersionKind()).raw, &fields) != nil {
		return nil
	}
	return fields
}

// fieldsOf returns the fields of an object that another one has.
func fieldsOf(object, like any) any {
	switch like := like.(type) {
	case map[string]any:
		fields, is := object.(map[string]any)
		if !is {
			return object
		}
		out := map[string]any{}
		for key, value := range like {
			if there, has := fields[key]; has {
				out[key] = fieldsOf(there, value)
			}
		}
		return out
	case []any:
		items, is := object.([]any)
		if !is || len(items) != len(like) {
			return object
		}
		out := make([]any, len(items))
		for i := range items {
			out[i] = fieldsOf(items[i], like[i])
		}
		return out
	}
	return object
}

// hookBody returns a body as the journal has it: without managed fields and the values of Secrets; the beginning of one
// that is no JSON.
func hookBody(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw[:min(len(raw), mostHookText)])
	}
	return string(marshalled(hookValue(v)))
}

func hookValue(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = hookValue(v[i])
		}
	case map[string]any:
		if v["kind"] == secretKind.Kind && v["apiVersion"] == "v1" {
			return hookObject(&unstructured.Unstructured{Object: v})
		}
		delete(v, "managedFields")
		for key := range v {
			v[key] = hookValue(v[key])
		}
	}
	return v
}
