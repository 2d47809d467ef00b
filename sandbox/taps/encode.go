//go:build go1.23

package taps

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// version is one version of an object as the journal stores it.
type version struct {
	ref        trace.Ref
	rv         string
	generation int64
	deleting   bool // deletionTimestamp is set
	partial    bool // only its metadata is known
	raw        json.RawMessage
	before     json.RawMessage // of a version that was read: the one known before
}

// encode returns an object's JSON for the journal: with its apiVersion and kind, which typed objects usually lack,
// without its managed fields, which are long and rarely useful, and without the values of a Secret.
func encode(obj client.Object, kind schema.GroupVersionKind) version {
	v := version{
		ref: reference(obj, kind), rv: obj.GetResourceVersion(), generation: obj.GetGeneration(),
		deleting: obj.GetDeletionTimestamp() != nil,
	}
	raw, err := json.Marshal(withoutManagedFields(obj, kind))
	if err != nil {
		return v
	}
	v.raw = redact(raw, kind)
	return v
}

// withoutManagedFields returns a shallow copy of an object without its managed fields; obj itself may belong to a cache
// and must not be changed.
func withoutManagedFields(obj client.Object, kind schema.GroupVersionKind) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return bareMap(u.Object)
	}
	p := reflect.ValueOf(obj)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return obj
	}
	c := reflect.New(p.Elem().Type())
	c.Elem().Set(p.Elem())
	bare, ok := c.Interface().(client.Object)
	if !ok || embedsPointer(c.Elem()) {
		return obj
	}
	bare.SetManagedFields(nil)
	bare.GetObjectKind().SetGroupVersionKind(kind)
	return bare
}

// embedsPointer reports whether a struct embeds a pointer, so that a setter called on a shallow copy would change the
// original.
func embedsPointer(v reflect.Value) bool {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.Type.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// bareMap returns an object's map without its managed fields.
func bareMap(in map[string]any) map[string]any {
	meta, ok := in["metadata"].(map[string]any)
	if !ok || meta["managedFields"] == nil {
		return in
	}
	out, bare := maps.Clone(in), maps.Clone(meta)
	delete(bare, "managedFields")
	out["metadata"] = bare
	return out
}

// bareJSON removes the managed fields from an object's JSON.
func bareJSON(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`"managedFields"`)) {
		return raw
	}
	var obj map[string]json.RawMessage
	var meta map[string]json.RawMessage
	if json.Unmarshal(raw, &obj) != nil || json.Unmarshal(obj["metadata"], &meta) != nil {
		return raw
	}
	delete(meta, "managedFields")
	m, err := json.Marshal(meta)
	if err != nil {
		return raw
	}
	obj["metadata"] = m
	out, err := json.Marshal(obj)
	if err != nil {
		return raw
	}
	return out
}

// secretKind is the kind whose data is redacted.
var secretKind = schema.GroupKind{Kind: "Secret"}

// redact replaces a Secret's values by their sizes and short hashes, so that a change is visible but not the secret.
func redact(raw []byte, kind schema.GroupVersionKind) []byte {
	if kind.GroupKind() != secretKind {
		return raw
	}
	var obj map[string]any
	if json.Unmarshal(raw, &obj) != nil {
		return nil
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := obj[field].(map[string]any)
		for k, v := range values {
			values[k] = hidden(field, v)
		}
	}
	// kubectl stores the whole object here, secrets included.
	if meta, ok := obj["metadata"].(map[string]any); ok {
		if notes, ok := meta["annotations"].(map[string]any); ok {
			delete(notes, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	out, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	return out
}

func hidden(field string, v any) string {
	s := fmt.Sprint(v)
	if b, err := base64.StdEncoding.DecodeString(s); err == nil && field == "data" {
		s = string(b)
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("(%d bytes, sha256 %x…)", len(s), sum[:4])
}

// reference returns the reference of an object.
func reference(obj client.Object, kind schema.GroupVersionKind) trace.Ref {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return trace.Ref{
		APIVersion: apiVersion, Kind: name,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: string(obj.GetUID()),
	}
}

// head holds the fields that the lab reads of any object's JSON.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name              string       `json:"name"`
		GenerateName      string       `json:"generateName"`
		Namespace         string       `json:"namespace"`
		UID               string       `json:"uid"`
		ResourceVersion   string       `json:"resourceVersion"`
		Generation        int64        `json:"generation"`
		CreationTimestamp metav1.Time  `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
}

// encodeAny returns the journal's JSON of anything that marshals to an object, such as an apply configuration.
func encodeAny(obj any) version {
	raw, err := json.Marshal(obj)
	if err != nil {
		return version{}
	}
	return decode(raw)
}

// decode returns the version in an object's JSON.
func decode(raw []byte) version {
	var h head
	if json.Unmarshal(raw, &h) != nil {
		return version{}
	}
	return h.version(raw)
}

// version returns the version in the JSON that a head was read from.
func (h head) version(raw []byte) version {
	return version{
		ref: trace.Ref{
			APIVersion: h.APIVersion, Kind: h.Kind,
			Namespace: h.Metadata.Namespace, Name: h.Metadata.Name, UID: h.Metadata.UID,
		},
		rv: h.Metadata.ResourceVersion, generation: h.Metadata.Generation, deleting: h.Metadata.DeletionTimestamp != nil,
		raw: redact(bareJSON(raw), schema.FromAPIVersionAndKind(h.APIVersion, h.Kind)),
	}
}

// newer reports whether resourceVersion a is newer than b. They are numbers in decimal, of any length. apimachinery
// compares them since v0.35 only.
func newer(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

// reasonOf returns the API server's reason for an error, such as Conflict; empty if there is none.
func reasonOf(err error) string { return string(apierrors.ReasonForError(err)) }
