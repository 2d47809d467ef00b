package helm

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/operator-framework/helm-operator-plugins/pkg/watches"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/client-go/rest"
)

// TestSkipsDependents checks that the option means what it says: upstream's run command turns it around.
func TestSkipsDependents(t *testing.T) {
	for _, c := range []struct {
		watch *bool
		skips bool
	}{{nil, false}, {new(true), false}, {new(false), true}} {
		if got := skipsDependents(watches.Watch{WatchDependentResources: c.watch}); got != c.skips {
			t.Errorf("watchDependentResources %v: skipped %t", c.watch, got)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestWithContext checks that a request has the values of both contexts, and ends with its own.
func TestWithContext(t *testing.T) {
	type key string
	of := context.WithValue(t.Context(), key("reconcile"), "#1")
	config, err := withContext(of, nil, &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	own, cancel := context.WithCancel(context.WithValue(t.Context(), key("call"), "get"))
	req, err := http.NewRequestWithContext(own, http.MethodGet, "http://nowhere", nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen context.Context
	resp, _ := config.WrapTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
		seen = req.Context()
		return &http.Response{Body: http.NoBody}, nil
	})).RoundTrip(req)
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if seen.Value(key("reconcile")) != "#1" || seen.Value(key("call")) != "get" {
		t.Error("a value is missing")
	}
	below, stop := context.WithCancel(seen)
	defer stop()
	cancel()
	if <-below.Done(); seen.Err() == nil {
		t.Error("it did not end with the request's own")
	}
}

// FuzzSpecSchema checks that of any JSON Schema comes a schema that a custom resource definition takes.
func FuzzSpecSchema(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"$ref":"#/definitions/c"},"c":{"type":"array","items":{"type":"integer"}}}}`,
		`{"type":"object","additionalProperties":{"type":"object","additionalProperties":false}}`, `{"type":"array"}`, `{"type":"null"}`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"oneOf":[{"type":"string"}]}}}},"required":["a"]}`, `[]`, `{"type":3}`, `{"type":"object","properties":{"0":{"type":""},"p":{"type":"string","pattern":"(?!x)"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		spec, err := specSchema(raw)
		if err != nil {
			return
		}
		spec = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&spec, &internal, nil); err != nil {
			t.Fatal(err)
		}
		s, err := structuralschema.NewStructural(&internal)
		if err != nil {
			t.Fatalf("%s becomes %s: %v", raw, asJSON(spec), err)
		}
		if wrong := structuralschema.ValidateStructural(nil, s); len(wrong) > 0 {
			t.Errorf("%s becomes %s: %v", raw, asJSON(spec), wrong.ToAggregate())
		}
	})
}

func asJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}
