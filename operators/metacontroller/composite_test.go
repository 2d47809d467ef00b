package metacontroller_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

const testAPI = "test.example.com/v1"

// partsOf answers a Part for each name and size in spec.parts of the parent, and their number in the status.
func partsOf(_ string, request object) any {
	sizes, _ := field(request, "parent", "spec", "parts").(object)
	children := []any{}
	for _, name := range slices.Sorted(mapKeys(sizes)) {
		children = append(children, part(name, object{"size": sizes[name]}))
	}
	observed, _ := field(request, "children", "Part."+testAPI).(object)
	return object{"children": children, "status": object{"observed": len(observed)}}
}

func mapKeys(m object) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// set changes spec.parts of a parent.
func (e *env) set(parent *unstructured.Unstructured, parts object) {
	e.t.Helper()
	e.MustUpdate(parent, func() { parent.Object["spec"] = object{"parts": parts} })
}

// uidOf returns the UID of a Part.
func (e *env) uidOf(name string) string {
	u := e.at(testAPI, "Part", name)
	e.MustGet(u)
	return string(u.GetUID())
}

func TestInPlace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(partsOf))
	cc := e.composite(nil, rule(testAPI, "parts", v1alpha1.InPlace))
	e.wantReady(cc, v1alpha1.ReasonStarted, "")
	parent := e.thing("one", object{"parts": object{"a": int64(1), "b": int64(1)}})
	e.wantParts("a=1 b=1")
	a := e.uidOf("a")
	e.set(parent, object{"a": int64(2), "c": int64(1)})
	e.wantParts("a=2 c=1")
	if e.uidOf("a") != a {
		t.Error("the Part was not updated in place")
	}
	sandboxtest.Eventually(t, "the status is the hook's, with the generation", func() bool {
		e.MustGet(parent)
		return cmp.Equal(parent.Object["status"], object{"observed": int64(2), "observedGeneration": parent.GetGeneration()})
	})
	drifted := e.at(testAPI, "Part", "c")
	e.MustUpdate(drifted, func() { drifted.Object["spec"] = object{"size": int64(9), "more": "from somebody else"} })
	sandboxtest.Eventually(t, "drift is repaired, and the field of somebody else stays", func() bool {
		e.MustGet(drifted)
		return cmp.Equal(drifted.Object["spec"], object{"size": int64(1), "more": "from somebody else"})
	})
	if owner := metav1.GetControllerOf(drifted); owner == nil || owner.UID != parent.GetUID() || !*owner.BlockOwnerDeletion {
		t.Errorf("the owner is %v", owner)
	}
}

// TestFieldTakenBack: a field that the hook does not answer any more is taken away.
func TestFieldTakenBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(func(_ string, request object) any {
		return object{"children": []any{part("a", field(request, "parent", "spec", "as").(object))}}
	}))
	e.composite(nil, rule(testAPI, "parts", v1alpha1.InPlace))
	parent := e.thing("one", object{"as": object{"size": int64(1), "color": "red"}})
	e.wantParts("a=1")
	e.MustUpdate(parent, func() { parent.Object["spec"] = object{"as": object{"size": int64(2)}} })
	child := e.at(testAPI, "Part", "a")
	sandboxtest.Eventually(t, "the color is gone", func() bool {
		e.MustGet(child)
		return cmp.Equal(child.Object["spec"], object{"size": int64(2)})
	})
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for method, wantParts := range map[v1alpha1.UpdateMethod]string{v1alpha1.OnDelete: "a=1 b=1", v1alpha1.Recreate: "a=2 b=1"} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.serve(webhook(partsOf))
			e.composite(nil, rule(testAPI, "parts", method))
			parent := e.thing("one", object{"parts": object{"a": int64(1), "b": int64(1)}})
			e.wantParts("a=1 b=1")
			a, b := e.uidOf("a"), e.uidOf("b")
			e.set(parent, object{"a": int64(2), "b": int64(1)})
			e.wantParts(wantParts)
			sandboxtest.Eventually(t, "the latest generation was synced", func() bool {
				e.MustGet(parent)
				return field(parent.Object, "status", "observedGeneration") == parent.GetGeneration()
			})
			if again := e.uidOf("a") != a; again != (method == v1alpha1.Recreate) {
				t.Errorf("it was created again: %v", again)
			}
			if e.uidOf("b") != b {
				t.Error("a child that did not change was created again")
			}
			e.MustDelete(e.at(testAPI, "Part", "a"))
			e.wantParts("a=2 b=1")
		})
	}
}

// TestRecreateFixedField recreates a child for a field that cannot be changed, and leaves it alone when the new one would
// be refused, too.
func TestRecreateFixedField(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(func(_ string, request object) any {
		return object{"children": []any{part("a", field(request, "parent", "spec", "as").(object))}}
	}))
	e.composite(nil, rule(testAPI, "parts", v1alpha1.Recreate))
	parent := e.thing("one", object{"as": object{"size": int64(1), "fixed": "x"}})
	e.wantParts("a=1")
	first := e.uidOf("a")
	e.MustUpdate(parent, func() { parent.Object["spec"] = object{"as": object{"size": int64(2), "fixed": "y"}} })
	e.wantParts("a=2")
	second := e.uidOf("a")
	if first == second {
		t.Error("the fixed field was changed in place")
	}
	e.MustUpdate(parent, func() { parent.Object["spec"] = object{"as": object{"size": int64(-1), "fixed": "z"}} })
	e.wantEvent(parent, "SyncError", "try Part a")
	if e.uidOf("a") != second {
		t.Error("the child was given up for one that is refused")
	}
}

// TestRequest looks at what hooks of both versions are given.
func TestRequest(t *testing.T) {
	t.Parallel()
	for version, key := range map[v1alpha1.HookVersion]string{v1alpha1.V1: "a", v1alpha1.V2: "%s/a"} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			var last atomic.Value
			e.serve(webhook(func(hook string, request object) any {
				last.Store(request)
				return object{"children": []any{part("a", nil)}}
			}))
			e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync = e.hook(version) },
				rule(testAPI, "parts", ""), rule("apps/v1", "deployments", ""), rule("v1", "configmaps", ""))
			parent := e.thing("one", nil)
			if version == v1alpha1.V2 {
				key = fmt.Sprintf(key, e.Name)
			}
			sandboxtest.Eventually(t, "it is given the child that it answered", func() bool {
				return field(last.Load(), "children", "Part."+testAPI, key) != nil
			})
			request, _ := last.Load().(object)
			if children, _ := request["children"].(object); len(children) != 3 ||
				!cmp.Equal(children["Deployment.apps/v1"], object{}) || !cmp.Equal(children["ConfigMap.v1"], object{}) {
				t.Errorf("the children are %v", children)
			}
			if field(request, "parent", "metadata", "uid") != string(parent.GetUID()) || request["finalizing"] != false ||
				field(request, "controller", "metadata", "name") != e.Name || !cmp.Equal(request["related"], object{}) {
				t.Errorf("the request is %v", request)
			}
		})
	}
}

// TestClaim adopts an orphan that the selector matches, and lets go of a child that it does not match any more.
func TestClaim(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	labels := map[string]string{"of": "one"}
	e.serve(webhook(func(_ string, request object) any {
		var children []any
		observed, _ := field(request, "children", "Part."+testAPI).(object)
		for name := range observed {
			child := part(name, nil)
			child["metadata"] = object{"name": name, "labels": object{"of": "one"}}
			children = append(children, child)
		}
		return object{"children": children}
	}))
	e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.GenerateSelector = nil }, rule(testAPI, "parts", ""))
	e.thing("one", object{"selector": object{"matchLabels": object{"of": "one"}}})
	orphan, other := e.at(testAPI, "Part", "orphan"), e.at(testAPI, "Part", "other")
	orphan.SetLabels(labels)
	e.MustCreate(other)
	e.MustCreate(orphan)
	e.wantParts("orphan=0")
	e.MustUpdate(orphan, func() { orphan.SetLabels(nil) })
	e.wantParts("")
	e.MustGet(orphan)
}

// TestNoSelector says that a parent has none.
func TestNoSelector(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(partsOf))
	e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.GenerateSelector = nil }, rule(testAPI, "parts", ""))
	e.wantEvent(e.thing("one", object{}), "SyncError", "Thing one has no spec.selector")
}

func TestFinalize(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(func(hook string, request object) any {
		if hook == "sync" {
			return object{"children": []any{part("a", nil), part("b", nil)}}
		}
		observed, _ := field(request, "children", "Part."+testAPI).(object)
		names := slices.Sorted(mapKeys(observed))
		var children []any
		for _, name := range names[:max(0, len(names)-1)] { // one less each time
			children = append(children, part(name, nil))
		}
		return object{"children": children, "finalized": len(names) == 0 && request["finalizing"] == true}
	}))
	e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Finalize = e.hook(v1alpha1.V1) }, rule(testAPI, "parts", ""))
	parent := e.thing("one", nil)
	e.wantParts("a=0 b=0")
	e.MustGet(parent)
	if want := []string{"metacontroller.io/compositecontroller-" + e.Name}; !cmp.Equal(parent.GetFinalizers(), want) {
		t.Errorf("the finalizers are %v, want %v", parent.GetFinalizers(), want)
	}
	e.MustDelete(parent)
	sandboxtest.Eventually(t, "the parent is gone", func() bool { return !e.Exists(parent) })
	if left := e.parts(); left != "" {
		t.Errorf("it went before its children %s", left)
	}
}

func TestResyncAfter(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var calls atomic.Int64
	e.serve(webhook(func(string, object) any {
		calls.Add(1)
		return object{"resyncAfterSeconds": 0.01}
	}))
	e.composite(nil)
	e.thing("one", nil)
	sandboxtest.Eventually(t, "it is asked again and again", func() bool { return calls.Load() > 5 })
}

func TestCustomize(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(func(hook string, request object) any {
		if hook == "customize" {
			return object{"relatedResources": []any{object{
				"apiVersion": "v1", "resource": "configmaps", "names": []any{field(request, "parent", "spec", "from")},
			}}}
		}
		return object{"status": object{"value": field(request, "related", "ConfigMap.v1", "wanted", "data", "value")}}
	}))
	e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Customize = e.hook(v1alpha1.V1) })
	parent := e.thing("one", object{"from": "wanted"})
	value := func(want any) {
		t.Helper()
		sandboxtest.Eventually(t, fmt.Sprint("the status has the value ", want), func() bool {
			e.MustGet(parent)
			return field(parent.Object, "status", "observedGeneration") != nil && field(parent.Object, "status", "value") == want
		})
	}
	value(nil)
	wanted := e.configMap("wanted")
	wanted.Data = map[string]string{"value": "1"}
	e.MustCreate(wanted)
	value("1")
	e.MustUpdate(wanted, func() { wanted.Data["value"] = "2" })
	value("2")
	e.MustDelete(wanted)
	value(nil)
}

// TestRolling updates one child after the other, and waits for the condition of each.
func TestRolling(t *testing.T) {
	t.Parallel()
	for _, method := range []v1alpha1.UpdateMethod{v1alpha1.RollingInPlace, v1alpha1.RollingRecreate} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.serve(webhook(func(_ string, request object) any {
				size := field(request, "parent", "spec", "size")
				return object{"children": []any{part("a", object{"size": size}), part("b", object{"size": size})}}
			}))
			parts := rule(testAPI, "parts", method)
			parts.UpdateStrategy.StatusChecks.Conditions = []v1alpha1.ConditionCheck{{Type: "Good", Status: new("True")}}
			e.composite(nil, parts)
			parent := e.thing("one", object{"size": int64(1)})
			e.wantParts("a=1 b=1")
			for _, name := range []string{"a", "b"} {
				e.good(name, "True")
			}
			e.updated(parent, "OnLatestRevision")
			a, b := e.uidOf("a"), e.uidOf("b")
			e.good("a", "False") // so that it is not good when it was updated in place; a new one is not anyway
			e.MustUpdate(parent, func() { parent.Object["spec"] = object{"size": int64(2)} })
			e.wantParts("a=2 b=1")
			e.updated(parent, "RolloutWaiting")
			if got := e.parts(); got != "a=2 b=1" {
				t.Errorf("it went on too soon: %s", got)
			}
			e.good("a", "True")
			e.wantParts("a=2 b=2")
			if inPlace := e.uidOf("a") == a && e.uidOf("b") == b; inPlace != (method == v1alpha1.RollingInPlace) {
				t.Errorf("they are the same objects: %v", inPlace)
			}
			e.updated(parent, "OnLatestRevision")
			sandboxtest.Eventually(t, "one revision is left", func() bool {
				var all v1alpha1.ControllerRevisionList
				return e.List(t.Context(), &all, client.InNamespace(e.Name)) == nil && len(all.Items) == 1
			})
		})
	}
}

// good gives a Part the condition that a rolling update waits for.
func (e *env) good(name, status string) {
	e.t.Helper()
	child := e.at(testAPI, "Part", name)
	e.MustUpdateStatus(child, func() {
		child.Object["status"] = object{"conditions": []any{object{"type": "Good", "status": status}}}
	})
}

// updated waits for a reason of the condition Updated.
func (e *env) updated(parent *unstructured.Unstructured, reason string) {
	e.t.Helper()
	sandboxtest.Eventually(e.t, "Updated has the reason "+reason, func() bool {
		e.MustGet(parent)
		conditions, _ := field(parent.Object, "status", "conditions").([]any)
		return len(conditions) == 1 && field(conditions[0], "reason") == reason &&
			field(parent.Object, "status", "observedGeneration") == parent.GetGeneration()
	})
}

// TestBadAnswers: each is told by an event about the parent and as the error of its sync, nothing of it is done, and another
// parent of the same controller goes on.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	timeout := metav1.Duration{Duration: time.Second} // on a busy machine an answer may take some tenths
	bad := map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		want   string
	}{
		"slow": {func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}, "sync hook: no answer in 1s"},
		"status":     {text(http.StatusTeapot, "I am a teapot"), "sync hook: it answered 418 I'm a teapot, want 200 OK: I am a teapot"},
		"text":       {text(http.StatusOK, "Hello!"), "sync hook: its answer is not the JSON of a sync hook"},
		"empty":      {text(http.StatusOK, ""), "sync hook: its answer is empty, want JSON"},
		"wrong-type": {text(http.StatusOK, `{"children": 3}`), "sync hook: its answer is not the JSON of a sync hook"},
		"elsewhere": {
			children(`{"apiVersion":"test.example.com/v1","kind":"Part","metadata":{"name":"x","namespace":"default"}}`),
			"Part x of its answer is in the namespace default, and can only be in " + e.Name,
		},
		"undeclared": {
			children(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`),
			"object 1 of its answer is ConfigMap.v1, which the controller does not declare",
		},
		"no-kind":    {children(`{"metadata":{"name":"x"}}`), "Object 'Kind' is missing"},
		"no-version": {children(`{"kind":"Part","metadata":{"name":"x"}}`), "object 1 of its answer has no apiVersion and kind"},
		"twice": {
			children(`{"apiVersion":"test.example.com/v1","kind":"Part","metadata":{"name":"x"}},{"apiVersion":"test.example.com/v1","kind":"Part","metadata":{"name":"x"}}`),
			"its answer has Part x twice",
		},
		"nameless": {children(`{"apiVersion":"test.example.com/v1","kind":"Part"}`), "object 1 of its answer, of kind Part, has no name"},
		"refused": {
			children(`{"apiVersion":"test.example.com/v1","kind":"Part","metadata":{"name":"x"},"spec":{"size":"big"}}`),
			"apply Part x:",
		},
		"gone": {func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("connection refused") }, "sync hook: connection refused"},
	}
	e.serve(transport(func(req *http.Request) (*http.Response, error) {
		return webhookOf(req, func(name string, request object) (*http.Response, error) {
			if b, is := bad[fmt.Sprint(field(request, "parent", "metadata", "name"))]; is {
				return b.answer(req)
			}
			return reply(http.StatusOK, toJSON(partsOf(name, request))), nil
		})
	}))
	cc := e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync.Webhook.Timeout = &timeout }, rule(testAPI, "parts", v1alpha1.InPlace))
	parents := map[string]*unstructured.Unstructured{}
	for name := range bad {
		parents[name] = e.thing(name, object{})
	}
	for name, b := range bad {
		e.wantEvent(parents[name], "SyncError", b.want)
	}
	e.thing("good", object{"parts": object{"a": int64(1)}})
	e.wantParts("a=1")
	e.wantReady(cc, v1alpha1.ReasonStarted, "")
}

func text(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return reply(status, body), nil }
}

func children(all string) func(*http.Request) (*http.Response, error) {
	return text(http.StatusOK, `{"children":[`+all+`]}`)
}

// webhookOf answers a request after it was read.
func webhookOf(req *http.Request, answer func(string, object) (*http.Response, error)) (resp *http.Response, err error) {
	_, readErr := webhook(func(name string, request object) any {
		resp, err = answer(name, request)
		return nil
	}).RoundTrip(req)
	if readErr != nil {
		return nil, readErr
	}
	return resp, err
}

// TestStrict refuses unknown fields of a v2 hook's answer, and takes them of v1.
func TestStrict(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.serve(webhook(func(string, object) any { return object{"kids": []any{}} }))
	e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync = e.hook(v1alpha1.V2) })
	e.wantEvent(e.thing("one", nil), "SyncError", `unknown field "kids"`)
}

// TestTaken leaves an object of somebody else alone.
func TestTaken(t *testing.T) {
	t.Parallel()
	for _, method := range []v1alpha1.UpdateMethod{v1alpha1.OnDelete, v1alpha1.InPlace} {
		e := newEnv(t)
		e.serve(webhook(partsOf))
		e.composite(nil, rule(testAPI, "parts", method))
		foreign := e.at(testAPI, "Part", "a")
		foreign.Object["spec"] = object{"size": int64(7)}
		e.MustCreate(foreign)
		e.wantEvent(e.thing("one", object{"parts": object{"a": int64(1)}}), "SyncError", "Part a belongs to somebody else")
		e.MustGet(foreign)
		if field(foreign.Object, "spec", "size") != int64(7) || metav1.GetControllerOf(foreign) != nil {
			t.Errorf("it was taken over: %v", foreign.Object)
		}
	}
}

// TestBadControllers says what is wrong in the condition Ready of a CompositeController, and starts it when that was mended.
func TestBadControllers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change          func(*v1alpha1.CompositeController)
		reason, message string
	}{
		"no status": {
			func(cc *v1alpha1.CompositeController) { cc.Spec.ParentResource.Resource = "blanks" },
			v1alpha1.ReasonNoStatusSubresource, "blanks of test.example.com/v1, have no subresource status",
		},
		"no such parent": {
			func(cc *v1alpha1.CompositeController) { cc.Spec.ParentResource.Resource = "nones" },
			v1alpha1.ReasonNoSuchResource, "the resource nones of test.example.com/v1 is not served",
		},
		"no such child": {func(cc *v1alpha1.CompositeController) {
			cc.Spec.ChildResources = []v1alpha1.ChildResourceRule{rule("v1", "things", "")}
		}, v1alpha1.ReasonNoSuchResource, "the resource things of v1 is not served"},
		"kind for resource": {
			func(cc *v1alpha1.CompositeController) { cc.Spec.ParentResource.Resource = "Thing" },
			v1alpha1.ReasonInvalid, `the resource "Thing" is no plural in lower case`,
		},
		"unknown method": {func(cc *v1alpha1.CompositeController) {
			cc.Spec.ChildResources = []v1alpha1.ChildResourceRule{rule("v1", "configmaps", "Sometimes")}
		}, v1alpha1.ReasonInvalid, `the update method of configmaps is "Sometimes"`},
		"no hooks":   {func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks = nil }, v1alpha1.ReasonInvalid, "spec.hooks is missing"},
		"no webhook": {func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync.Webhook = nil }, v1alpha1.ReasonInvalid, "spec.hooks.sync has no webhook"},
		"no url":     {func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync.Webhook.URL = new("sync.py") }, v1alpha1.ReasonInvalid, `"sync.py" is no URL`},
		"neither":    {func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync.Webhook.URL = nil }, v1alpha1.ReasonInvalid, "neither a url nor a service"},
		"version":    {func(cc *v1alpha1.CompositeController) { *cc.Spec.Hooks.Sync.Version = "v3" }, v1alpha1.ReasonInvalid, "can be v1 or v2"},
		"ca":         {func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync.Webhook.CABundle = &v1alpha1.CABundle{} }, v1alpha1.ReasonNotSupported, "caBundle is not supported"},
		"cluster-scoped": {func(cc *v1alpha1.CompositeController) {
			cc.Spec.ParentResource.Resource = "places"
			cc.Spec.ChildResources = []v1alpha1.ChildResourceRule{rule(testAPI, "parts", v1alpha1.RollingInPlace)}
		}, v1alpha1.ReasonNotSupported, "rolling update of the children of places"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.serve(webhook(partsOf))
			cc := e.composite(c.change, rule(testAPI, "parts", ""))
			e.wantReady(cc, c.reason, c.message)
			e.wantEvent(cc, "CreateError", c.message)
			e.MustUpdate(cc, func() {
				cc.Spec.ParentResource.Resource = "things"
				cc.Spec.ChildResources = []v1alpha1.ChildResourceRule{rule(testAPI, "parts", "")}
				cc.Spec.Hooks = &v1alpha1.Hooks{Sync: e.hook(v1alpha1.V1)}
			})
			e.wantReady(cc, v1alpha1.ReasonStarted, "")
		})
	}
}

// TestClusterScopedParent has children in two namespaces, which are told apart by their keys.
func TestClusterScopedParent(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var keys atomic.Value
	e.serve(webhook(func(_ string, request object) any {
		observed, _ := field(request, "children", "ConfigMap.v1").(object)
		keys.Store(slices.Sorted(mapKeys(observed)))
		return object{"children": []any{object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "namespace": e.Name}}}}
	}))
	e.composite(func(cc *v1alpha1.CompositeController) { cc.Spec.ParentResource.Resource = "places" }, rule("v1", "configmaps", ""))
	place := e.at(testAPI, "Place", e.Name)
	place.SetNamespace("")
	place.SetLabels(map[string]string{"test": e.Name})
	e.MustCreate(place)
	t.Cleanup(func() { _ = e.Delete(t.Context(), place) })
	sandboxtest.Eventually(t, "the child has its namespace in its key", func() bool {
		got, _ := keys.Load().([]string)
		return cmp.Equal(got, []string{e.Name + "/a"})
	})
}

// TestStops: children stay, and nobody is asked, once the controller is deleted.
func TestStops(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var calls atomic.Int64
	e.serve(webhook(func(name string, request object) any {
		calls.Add(1)
		return partsOf(name, request)
	}))
	cc := e.composite(nil, rule(testAPI, "parts", v1alpha1.InPlace))
	parent := e.thing("one", object{"parts": object{"a": int64(1)}})
	e.wantParts("a=1")
	e.MustDelete(cc)
	again := newEnv(t) // what it does later shows that the first has ended
	again.serve(webhook(partsOf))
	again.composite(nil, rule(testAPI, "parts", v1alpha1.InPlace))
	again.thing("one", object{"parts": object{"b": int64(1)}})
	again.wantParts("b=1")
	before := calls.Load()
	e.set(parent, object{"a": int64(2)})
	again.thing("two", object{"parts": object{"c": int64(1)}})
	again.wantParts("b=1 c=1")
	if e.parts() != "a=1" || calls.Load() != before {
		t.Errorf("it goes on: the parts are %s, and the hook was asked %d times more", e.parts(), calls.Load()-before)
	}
}
