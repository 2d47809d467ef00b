package metacontroller

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// FuzzAnswer reads answers: what is taken has only children that the parent could own, each once.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}],"status":{"n":1},"resyncAfterSeconds":0.5}`,
		`{"children":[null]}`, `{"children":[{"kind":"Pod","apiVersion":"v1","metadata":null}]}`, `[]`, `{`, ``, `null`,
		`{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":3,"namespace":[]}}],"status":[]}`,
		`{"children":[{"apiVersion":"v1","kind":"PodList","items":[{}]}]}`,
	} {
		f.Add([]byte(seed), true)
	}
	pods := kinds{{kind: kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods", namespaced: true}}}
	f.Fuzz(func(t *testing.T, raw []byte, strict bool) {
		parent := &unstructured.Unstructured{}
		parent.SetNamespace("here")
		answer := &compositeAnswer{of: parent, kinds: pods}
		h := &hook{name: hookSync, strict: strict, version: v1alpha1.V1}
		if h.read(raw, answer) != nil || answer.check() != nil {
			return
		}
		if len(answer.objects()) != len(answer.Children) {
			t.Errorf("%d children were answered, and %d are wanted", len(answer.Children), len(answer.objects()))
		}
		for _, u := range answer.objects() {
			if u.GetNamespace() != "here" || u.GetName() == "" || u.GetKind() != "Pod" {
				t.Errorf("a child is %v", u.Object)
			}
			own(u, parent)
		}
	})
}
