package kit_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/operator-lab/operator-lab/operators/kit"
)

func service(uid string, labels map[string]string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: labels}}
	if uid != "" {
		s.Annotations = map[string]string{"owner": uid}
	}
	return s
}

// TestEnsure goes through what the cache and the API server may have of an object.
func TestEnsure(t *testing.T) {
	mine := func(obj client.Object) bool { return obj.GetAnnotations()["owner"] == "me" }
	blue, other := map[string]string{"team": "blue"}, map[string]string{"team": "other"}
	for name, test := range map[string]struct {
		live   *corev1.Service // nil: there is none
		cached bool            // the cache has it too
		want   kit.Change
		labels map[string]string // of what there is then
	}{
		"there is none":                         {nil, false, kit.Created, blue},
		"it is as wanted":                       {service("me", blue), true, kit.None, blue},
		"it is different":                       {service("me", other), true, kit.Applied, blue},
		"somebody else's":                       {service("them", other), true, kit.Taken, other},
		"created a moment ago":                  {service("me", blue), false, kit.None, blue},
		"somebody else created it a moment ago": {service("them", other), false, kit.Taken, other},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			current := &corev1.Service{}
			if test.live != nil {
				test.live.UID = "uid"
				builder = builder.WithObjects(test.live)
				if test.cached {
					current = test.live.DeepCopy()
				}
			}
			api := builder.Build()
			want := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			want.SetAPIVersion("v1")
			want.SetKind("Service")
			want.SetNamespace("ns")
			want.SetName("web")
			want.SetLabels(blue)
			want.SetAnnotations(map[string]string{"owner": "me"})
			change, err := kit.Writer{Client: api, Live: api, Owner: "kit"}.Ensure(t.Context(), current, want, mine)
			if err != nil || change != test.want {
				t.Fatalf("the change is %d, want %d (error: %v)", change, test.want, err)
			}
			if got := current.Labels["team"]; got != test.labels["team"] {
				t.Errorf("the answer has the label %s, want %s", got, test.labels["team"])
			}
		})
	}
}

// TestDelete: it is the object of that UID which is deleted, and it may be gone already.
func TestDelete(t *testing.T) {
	for name, live := range map[string][]client.Object{"it is there": {service("me", nil)}, "it is gone": nil} {
		t.Run(name, func(t *testing.T) {
			var asked client.DeleteOptions
			api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(live...).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
					asked.ApplyOptions(o)
					return c.Delete(ctx, obj, o...)
				},
			}).Build()
			read := service("me", nil)
			read.UID = "uid"
			if err := (kit.Writer{Client: api}).Delete(t.Context(), read); err != nil {
				t.Fatal(err)
			}
			if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID != "uid" {
				t.Errorf("any object of the name would have been deleted: %+v", asked.Preconditions)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(read), read); !apierrors.IsNotFound(err) {
				t.Errorf("it is not gone: %v", err)
			}
		})
	}
}
