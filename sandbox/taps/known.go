//go:build go1.23

package taps

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// known is what was seen of objects so far: with it an event can show what it changed, and name the kind of what a request
// is for.
type known struct {
	kinds sync.Map // schema.GroupVersionResource -> kind, learned from answers

	mu      sync.Mutex
	objects map[feedKey]map[types.NamespacedName]version
}

// knownRef returns the reference of a request's target, with its kind if it is one of Kubernetes' own or an earlier answer
// had it: the answer to a deletion has none, and neither has that to a read of what is not there.
func (k *known) knownRef(p apirequest.Target) trace.Ref {
	r := refOf(p)
	if p.Subresource != "" {
		return r
	}
	if kind, ok := k.kinds.Load(p.GVR()); ok {
		r.Kind, _ = kind.(string)
	} else if kind, ok := wellKnown()[p.GVR()]; ok {
		r.Kind = kind
	}
	return r
}

// wellKnown returns the kinds of Kubernetes' own resources.
var wellKnown = sync.OnceValue(func() map[schema.GroupVersionResource]string {
	kinds := map[schema.GroupVersionResource]string{}
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		kinds[plural] = gvk.Kind
	}
	return kinds
})

// learnKind remembers the kind in an answer about an object itself, not about a subresource.
func (k *known) learnKind(p apirequest.Target, kind string) {
	if p.Subresource == "" && kind != "" {
		k.kinds.Store(p.GVR(), kind)
	}
}

// named returns the reference of a request's target completed by the object in the body. The body of a subresource is
// an object of another kind.
func (k *known) named(p apirequest.Target, o trace.Ref) trace.Ref {
	r := k.knownRef(p)
	if p.Subresource != "" && p.Subresource != "status" {
		return r
	}
	r.Kind, r.Name, r.UID = orElse(o.Kind, r.Kind), orElse(o.Name, r.Name), o.UID
	return r
}

// learnRead remembers a version that was read. Its watch event, which may come later, still shows what changed.
func (k *known) learnRead(v version) {
	last := k.lastKnown(kindOf(v.ref), v.ref.Namespace, v.ref.Name)
	if last.rv == v.rv && last.ref.UID == v.ref.UID {
		return
	}
	v.before = last.raw
	k.learn(kindOf(v.ref), v, false)
}

// ofKind completes a version whose kind says only how much of the object it has.
func (k *known) ofKind(v version, p apirequest.Target) version {
	switch v.ref.Kind {
	case "Table":
		return version{partial: true}
	case "PartialObjectMetadata":
		ref := k.knownRef(p)
		v.ref.APIVersion, v.ref.Kind, v.partial = ref.APIVersion, ref.Kind, true
	}
	return v
}

// learn remembers the newest known version of an object, so that a later event can show what it changed.
func (k *known) learn(kind schema.GroupVersionKind, v version, gone bool) {
	key := types.NamespacedName{Namespace: v.ref.Namespace, Name: v.ref.Name}
	k.mu.Lock()
	defer k.mu.Unlock()
	objects := k.objects[kind]
	if objects == nil {
		objects = map[types.NamespacedName]version{}
		k.objects[kind] = objects
	}
	switch old, has := objects[key]; {
	case gone:
		delete(objects, key)
	case v.raw == nil:
	case has && old.ref.UID == v.ref.UID && newer(old.rv, v.rv):
		// An older version is a watch event that came after the answer to a later write.
	default:
		objects[key] = v
	}
}

// lastKnown returns the newest known version of an object.
func (k *known) lastKnown(kind schema.GroupVersionKind, namespace, name string) version {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.objects[kind][types.NamespacedName{Namespace: namespace, Name: name}]
}

// itemList is what the recorder reads of a list.
type itemList struct {
	items []version
	more  bool // there is another page
}

// decodeList returns the items of a list, in JSON or protobuf.
func (k *known) decodeList(p apirequest.Target, body []byte) (l itemList) {
	if len(body) == 0 {
		return l
	}
	if body[0] != '{' {
		return k.decodeBinaryList(p, body)
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(body, &head) != nil {
		return l
	}
	l.more = head.Metadata.Continue != ""
	if head.Kind == "Table" {
		head.Items = rows(body)
	}
	of := trace.Ref{APIVersion: head.APIVersion, Kind: strings.TrimSuffix(head.Kind, "List")}
	for _, raw := range head.Items {
		v, _ := k.decodeItem(raw, p, of)
		l.items = append(l.items, v)
	}
	return l
}

func (k *known) decodeBinaryList(p apirequest.Target, body []byte) (l itemList) {
	obj, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return l
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		l.more = list.GetContinue() != ""
	}
	item := kind.GroupVersion().WithKind(strings.TrimSuffix(kind.Kind, "List"))
	k.learnKind(p, item.Kind)
	_ = meta.EachListItem(obj, func(o runtime.Object) error { // it is a list
		if o, ok := o.(client.Object); ok {
			l.items = append(l.items, encode(o, item))
		}
		return nil
	})
	return l
}

// decodeItem returns the version of an object in a list or a watch event, and when the object was made. Items of most
// lists do not say their kind; it is that of the list.
func (k *known) decodeItem(raw json.RawMessage, p apirequest.Target, of trace.Ref) (v version, created time.Time) {
	if len(raw) > 0 && raw[0] != '{' {
		obj, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		o, is := obj.(client.Object)
		if err != nil || !is {
			return v, created
		}
		k.learnKind(p, kind.Kind)
		return encode(o, *kind), o.GetCreationTimestamp().Time
	}
	var h head
	if json.Unmarshal(raw, &h) != nil {
		return v, created
	}
	if h.Kind == "" && of.Kind != "" {
		if own, err := json.Marshal(of); err == nil {
			h.APIVersion, h.Kind = of.APIVersion, of.Kind
			raw = append(append(own[:len(own)-1], ','), raw[1:]...)
		}
	}
	v = k.ofKind(h.version(raw), p)
	if !v.partial {
		k.learnKind(p, v.ref.Kind)
	}
	return v, h.Metadata.CreationTimestamp.Time
}
