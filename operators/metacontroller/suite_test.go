package metacontroller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// server is the API server of all tests of this package.
var server = sandboxtest.ShareAPIServer(func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := metacontroller.CRDs()
	more, moreErr := zundoko.CRDs(zundoko.Hardened)
	crds = append(crds, more...)
	for _, file := range []string{"testdata/crds.yaml", "examples/catset/crd.yaml"} {
		raw, readErr := os.ReadFile(file)
		moreErr = errors.Join(moreErr, readErr)
		for doc := range bytes.SplitSeq(raw, []byte("\n---\n")) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			moreErr = errors.Join(moreErr, yaml.UnmarshalStrict(doc, crd))
			crds = append(crds, crd)
		}
	}
	return crds, errors.Join(err, moreErr)
})

// operator is the one operator of all tests of this package: so each test also shows that the others do not disturb it.
var operator = sandboxtest.Share(func(ctx context.Context) (*hooks, func() error, error) {
	h := &hooks{}
	mgr, err := ctrl.NewManager(server.Get(first), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := metacontroller.SetupWithManager(mgr, metacontroller.Options{Transport: h, Called: h.note}); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return h, func() error { cancel(); return <-done }, nil
})

// first is the test that starts what is shared.
var first testing.TB

var scheme = runtime.NewScheme()

func TestMain(m *testing.M) {
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), metacontroller.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	os.Exit(sandboxtest.Main(m, operator, server)) // in this order
}

// hooks answers the requests to hooks: those to http://name/… by the hook of that name.
type hooks struct {
	byName sync.Map
	mu     sync.Mutex
	calls  []metacontroller.Call
}

func (h *hooks) RoundTrip(req *http.Request) (*http.Response, error) {
	found, is := h.byName.Load(req.URL.Host)
	if !is {
		return nil, errors.New("no such host")
	}
	return found.(http.RoundTripper).RoundTrip(req)
}

func (h *hooks) note(_ context.Context, c metacontroller.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// object is one in its JSON form.
type object = map[string]any

// webhook is a hook of a test: it answers the request to a hook of a name with an object in JSON.
type webhook func(name string, request object) any

func (w webhook) RoundTrip(req *http.Request) (*http.Response, error) {
	request := object{}
	if err := json.NewDecoder(req.Body).Decode(&request); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(w(metacontroller.HookOf(req.Context()), request))
	return reply(http.StatusOK, string(answer)), err
}

func reply(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// env is a namespace of a test's own, and a hook of that name.
type env struct {
	*sandboxtest.Namespace
	t     *testing.T
	hooks *hooks
}

func newEnv(t *testing.T) *env {
	t.Helper()
	once.Do(func() { first = t })
	config := server.Get(t)
	return &env{Namespace: sandboxtest.NewNamespace(t, config, scheme), t: t, hooks: operator.Get(t)}
}

var once sync.Once

// serve answers the requests to the test's hook.
func (e *env) serve(rt http.RoundTripper) {
	e.hooks.byName.Store(e.Name, rt)
	e.t.Cleanup(func() { e.hooks.byName.Delete(e.Name) })
}

// hook returns the hook of a path, of a version.
func (e *env) hook(version v1alpha1.HookVersion) *v1alpha1.Hook {
	return &v1alpha1.Hook{Version: &version, Webhook: &v1alpha1.Webhook{URL: new("http://" + e.Name + "/")}}
}

// composite makes a CompositeController for Things of this namespace, with the given kinds of children.
func (e *env) composite(change func(*v1alpha1.CompositeController), children ...v1alpha1.ChildResourceRule) *v1alpha1.CompositeController {
	e.t.Helper()
	cc := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	cc.Spec.ParentResource.ResourceRule = v1alpha1.ResourceRule{APIVersion: "test.example.com/v1", Resource: "things"}
	cc.Spec.ParentResource.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": e.Name}}
	cc.Spec.GenerateSelector = new(true)
	cc.Spec.ChildResources = children
	cc.Spec.Hooks = &v1alpha1.Hooks{Sync: e.hook(v1alpha1.V1)}
	if change != nil {
		change(cc)
	}
	e.MustCreate(cc)
	e.t.Cleanup(func() {
		if err := client.IgnoreNotFound(e.Delete(context.WithoutCancel(e.t.Context()), cc)); err != nil {
			e.t.Error(err)
		}
	})
	return cc
}

func rule(apiVersion, resource string, method v1alpha1.UpdateMethod) v1alpha1.ChildResourceRule {
	return v1alpha1.ChildResourceRule{
		ResourceRule:   v1alpha1.ResourceRule{APIVersion: apiVersion, Resource: resource},
		UpdateStrategy: &v1alpha1.UpdateStrategy{Method: method},
	}
}

// thing creates a parent.
func (e *env) thing(name string, spec object) *unstructured.Unstructured {
	e.t.Helper()
	u := e.at("test.example.com/v1", "Thing", name)
	u.SetLabels(map[string]string{"test": e.Name})
	u.Object["spec"] = spec
	e.MustCreate(u)
	return u
}

// at names an object of this namespace.
func (e *env) at(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(e.Name)
	u.SetName(name)
	return u
}

// part is a child as a hook answers it.
func part(name string, spec object) object {
	return object{"apiVersion": "test.example.com/v1", "kind": "Part", "metadata": object{"name": name}, "spec": spec}
}

// parts returns the names of the Parts of this namespace that have a controller, with their size, as in a=1 b=2.
func (e *env) parts() string {
	e.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("test.example.com/v1")
	list.SetKind("PartList")
	if err := e.List(e.t.Context(), list, client.InNamespace(e.Name)); err != nil {
		e.t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		if metav1.GetControllerOf(&list.Items[i]) != nil {
			size, _, _ := unstructured.NestedInt64(list.Items[i].Object, "spec", "size")
			out = append(out, list.Items[i].GetName()+"="+string(rune('0'+size)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// wantParts waits until the Parts are those.
func (e *env) wantParts(want string) {
	e.t.Helper()
	sandboxtest.Eventually(e.t, "the parts are "+want, func() error {
		if got := e.parts(); got != want {
			return errors.New("they are " + got)
		}
		return nil
	})
}

// wantEvent waits for an event about an object whose reason and note contain these.
func (e *env) wantEvent(about client.Object, reason, note string) {
	e.t.Helper()
	sandboxtest.Eventually(e.t, "an event "+reason+": "+note, func() error {
		var list eventsv1.EventList
		if err := e.List(e.t.Context(), &list); err != nil {
			return err
		}
		var notes []string
		for _, event := range list.Items {
			if event.Regarding.Name == about.GetName() && event.Regarding.UID == about.GetUID() {
				if event.Reason == reason && strings.Contains(event.Note, note) {
					return nil
				}
				notes = append(notes, event.Reason+": "+event.Note)
			}
		}
		return errors.New("there are only " + strings.Join(notes, "; "))
	})
}

// wantReady waits until the condition Ready has a reason and its message contains a text.
func (e *env) wantReady(cc *v1alpha1.CompositeController, reason, message string) {
	e.t.Helper()
	sandboxtest.Eventually(e.t, "Ready has the reason "+reason, func() error {
		e.MustGet(cc)
		ready := apimeta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, message) {
			return errors.New("it is " + toJSON(ready))
		}
		return nil
	})
}

func toJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// field returns a field of an object in JSON, empty if there is none.
func field(o any, path ...string) any {
	for _, name := range path {
		m, is := o.(map[string]any)
		if !is {
			return nil
		}
		o = m[name]
	}
	return o
}

// configMap returns a ConfigMap of this namespace.
func (e *env) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Name, Name: name}}
}
