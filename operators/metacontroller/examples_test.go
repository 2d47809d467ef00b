package metacontroller_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/metacontroller"
	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox/hook"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// seed is that of the songs.
const seed = 8

// TestZundoko sings with the hook in each language, and compares with the song of the operator in Go.
func TestZundoko(t *testing.T) {
	t.Parallel()
	for file, needs := range map[string]string{"sync.py": "python3", "sync.mjs": "node", "sync.sh": "jq"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(needs); err != nil {
				t.Skip(err)
			}
			e := newEnv(t)
			e.example("zundoko", file, "SEED="+fmt.Sprint(seed))
			hikawa := e.at("zundokokiyoshi.kaitoy.github.com/v1beta1", v1beta1.HikawaKind, shortSinger(e.Name))
			hikawa.SetLabels(map[string]string{"test": e.Name})
			hikawa.Object["spec"] = object{"intervalMillis": int64(1)}
			e.MustCreate(hikawa)
			var want []string
			for _, word := range zundoko.Song(seed, hikawa) {
				want = append(want, string(word))
			}
			sandboxtest.Eventually(t, "it has kiyoshied", func() error {
				e.MustGet(hikawa)
				if field(hikawa.Object, "status", "kiyoshied") != true {
					return fmt.Errorf("the status is %s", toJSON(hikawa.Object["status"]))
				}
				return nil
			})
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ZundokoList"))
			if err := e.List(t.Context(), list, client.InNamespace(e.Name)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range list.Items { // by name, which is by number
				got = append(got, fmt.Sprint(field(list.Items[i].Object, "spec", "say")))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("it sang %v, and the operator in Go sings %v", got, want)
			}
			if n := field(hikawa.Object, "status", "numZundokosSaid"); n != int64(len(want)) {
				t.Errorf("the status counts %v words of %d", n, len(want))
			}
		})
	}
}

// shortSinger returns a name whose song is short in a namespace.
func shortSinger(namespace string) string {
	for n := 0; ; n++ {
		hikawa := &unstructured.Unstructured{}
		hikawa.SetNamespace(namespace)
		hikawa.SetName(fmt.Sprintf("singer-%d", n))
		if words := len(zundoko.Song(seed, hikawa)); words > 5 && words < 12 {
			return hikawa.GetName()
		}
	}
}

// example runs the controller of an example for parents of this namespace, with a program as its hook.
func (e *env) example(name, file string, env ...string) {
	e.t.Helper()
	dir := filepath.Join("examples", name)
	program, err := hook.New(hook.Options{
		File: filepath.Join(dir, file), Env: env, Name: func(r *http.Request) string { return metacontroller.HookOf(r.Context()) },
	})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(program.Close)
	e.serve(program)
	raw, err := os.ReadFile(filepath.Join(dir, "controller.yaml"))
	if err != nil {
		e.t.Fatal(err)
	}
	cc := &v1alpha1.CompositeController{}
	if err := yaml.UnmarshalStrict(raw, cc); err != nil {
		e.t.Fatal(err)
	}
	e.composite(func(mine *v1alpha1.CompositeController) {
		mine.Spec = cc.Spec
		mine.Spec.ParentResource.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": e.Name}}
		for _, h := range []*v1alpha1.Hook{mine.Spec.Hooks.Sync, mine.Spec.Hooks.Finalize} {
			if h != nil {
				h.Webhook.URL = new("http://" + e.Name + "/")
			}
		}
	})
}

// TestCatSet scales from 3 Pods to 4 and to 2, and deletes: each time one Pod after the other, and the finalizer goes to 0.
func TestCatSet(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	e := newEnv(t)
	e.example("catset", "sync.py")
	raw, err := os.ReadFile("examples/catset/cats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cats := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &cats.Object); err != nil {
		t.Fatal(err)
	}
	cats.SetNamespace(e.Name)
	cats.SetLabels(map[string]string{"test": e.Name})
	e.MustCreate(cats)
	most := e.wantCats(3)
	if most != "cats-0 cats-1 cats-2" {
		t.Errorf("the Pods are %s", most)
	}
	for _, replicas := range []int64{4, 2} {
		e.MustUpdate(cats, func() { field(cats.Object, "spec").(object)["replicas"] = replicas })
		e.wantCats(int(replicas))
	}
	e.MustDelete(cats)
	sandboxtest.Eventually(t, "it is gone", func() bool { return !e.Exists(cats) })
	if left := e.pods(); left != "" {
		t.Errorf("it went before %s", left)
	}
}

// pods returns the names of the Pods.
func (e *env) pods() string {
	e.t.Helper()
	var names []string
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("PodList")
	if err := e.List(e.t.Context(), list, client.InNamespace(e.Name)); err != nil {
		e.t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return strings.Join(names, " ")
}

// wantCats makes the Pods Ready, as a kubelet would, until there are so many, and checks that only one at a time is not.
func (e *env) wantCats(n int) (names string) {
	e.t.Helper()
	sandboxtest.Eventually(e.t, fmt.Sprintf("there are %d Pods", n), func() error {
		names = e.pods()
		var all []string
		if names != "" {
			all = strings.Split(names, " ")
		}
		waiting := 0
		for _, name := range all {
			pod := e.at("v1", "Pod", name)
			if !e.Exists(pod) || field(pod.Object, "status", "conditions") != nil {
				continue
			}
			waiting++
			e.MustUpdateStatus(pod, func() {
				pod.Object["status"] = object{"phase": "Running", "conditions": []any{object{"type": "Ready", "status": "True"}}}
			})
		}
		if waiting > 1 {
			e.t.Errorf("%d Pods were made at once", waiting)
		}
		if len(all) != n {
			return fmt.Errorf("there are %s", names)
		}
		return nil
	})
	return names
}
