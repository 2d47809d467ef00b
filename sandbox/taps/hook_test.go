package taps_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func fields(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestHook records what a hook wants to be different, and no value of a Secret.
func TestHook(t *testing.T) {
	t.Parallel()
	journal := trace.New(trace.Options{})
	tapped := taps.New(journal, taps.Options{Operator: "op"})
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"password":"hunter2"}}`
	there := fields(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u","managedFields":[{"manager":"m"}]},"spec":{"n":1,"more":true,"list":[{"a":1,"b":2}]}}`)
	wanted := fields(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"n":1,"list":[{"a":1}]}}`)
	tapped.Hook(t.Context(), taps.HookCall{
		Name: "sync", URL: "http://here/sync", Object: fields(t, `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"one"},"status":{"n":1,"observedGeneration":2,"conditions":[{"type":"Updated"}]}}`),
		Request: []byte(`{"related":{"Secret.v1":{"s":` + secret + `}}}`), Response: []byte(`{"children":[` + secret + `]}`), Status: 200,
		Observed:      []*unstructured.Unstructured{there, fields(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"old"},"spec":{"n":1}}`)},
		Desired:       []*unstructured.Unstructured{wanted, fields(t, secret)},
		DesiredStatus: map[string]any{"n": int64(1)},
	})
	tapped.Hook(t.Context(), taps.HookCall{Name: "sync", Object: there, Response: []byte("<html>"), Err: errors.New("it is no JSON")})
	events := journal.Since(0)
	if len(events) != 2 {
		t.Fatalf("there are %d events", len(events))
	}
	if text := trace.HookText(events[0], trace.English); text != "2 observed, 2 desired  + Secret s  - Pod old" {
		t.Errorf("it wants %q", text)
	}
	whole, err := json.Marshal(events[0])
	if err != nil || strings.Contains(string(whole), "hunter2") || strings.Contains(string(whole), "managedFields") {
		t.Errorf("the journal has %s (error: %v)", whole, err)
	}
	if e := events[1]; e.Error != "it is no JSON" || e.Hook().Response != "<html>" || e.After != nil {
		t.Errorf("the failed one is %+v", e)
	}
}
