package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

func checkpoint(t *testing.T, lab *sandbox.Sandbox, name string) *sandbox.Checkpoint {
	t.Helper()
	c, err := lab.Checkpoints().Save(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func restore(t *testing.T, lab *sandbox.Sandbox, c *sandbox.Checkpoint) {
	t.Helper()
	if err := lab.Checkpoints().Restore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func createMap(t *testing.T, c kubernetes.Interface, name, value string) *corev1.ConfigMap {
	t.Helper()
	made, err := c.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func setMap(t *testing.T, c kubernetes.Interface, name, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"data": {"value": %q}}`, value)
	if _, err := c.CoreV1().ConfigMaps("default").Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// asThen is nil if a cluster has an object, as it was or as it was put back, and has none of the names that were made later.
func asThen(ctx context.Context, c kubernetes.Interface, was *corev1.ConfigMap, later ...string) error {
	maps := c.CoreV1().ConfigMaps("default")
	now, err := maps.Get(ctx, was.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if now.UID != was.UID || now.CreationTimestamp != was.CreationTimestamp || now.Data["value"] != was.Data["value"] {
		return fmt.Errorf("it is %v, and was %v", now, was)
	}
	for _, name := range later {
		if _, err := maps.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s of later: %w", name, err)
		}
	}
	return nil
}

// TestRestore takes a cluster back, more than once, to where it was before all kinds of things happened to it.
func TestRestore(t *testing.T) {
	t.Parallel()
	var exits, steps sync.Map
	lab := start(t, sandbox.Options{
		OnExit:   func(e sandbox.Exit) { exits.Store(e.Program, e) },
		Progress: func(s sandbox.Step) { steps.Store(s.Name, s) },
	})
	steps.Clear() // those of the start are over
	c := clientset(t, lab)
	changed, deleted := createMap(t, c, "changed", "then"), createMap(t, c, "deleted", "then")
	songs := lessonObjects(t, lab)
	untouched := createMap(t, c, "untouched", "")
	seen := follow(t, c)
	point := checkpoint(t, lab, "task")
	pids := lab.PIDs()
	if point.Revision() <= 0 {
		t.Errorf("it has revision %d", point.Revision())
	}
	for round := range 3 {
		setMap(t, c, "changed", fmt.Sprint("round ", round))
		if err := c.CoreV1().ConfigMaps("default").Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		later := createMap(t, c, "later", fmt.Sprint("round ", round))
		sandboxtest.Eventually(t, "the informer to see what happens", seen.is(func(m map[string]*corev1.ConfigMap) bool {
			return m["later"] != nil && m["deleted"] == nil
		}))
		songs.spoil(t)
		watching := kubectlWatch(t, lab)

		restore(t, lab, point)

		if err := errors.Join(asThen(t.Context(), c, changed, "later"), asThen(t.Context(), c, deleted)); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		expectRevisions(t, c, point, untouched, later)
		songs.expect(t)
		sandboxtest.Eventually(t, "the informer to see the state of then", seen.is(func(m map[string]*corev1.ConfigMap) bool {
			return m["later"] == nil && m["deleted"] != nil && m["deleted"].UID == deleted.UID && m["changed"].Data["value"] == "then"
		}))
		watching.sees(t, "deleted")
		if again := createMap(t, c, fmt.Sprint("new-", round), ""); !newer(t, again.ResourceVersion, later.ResourceVersion) {
			t.Errorf("round %d: revision %s comes after %s", round, again.ResourceVersion, later.ResourceVersion)
		}
		deletionPropagates(t, lab, anyClient(t, lab), "default")
	}
	for _, program := range []string{"etcd", "kube-apiserver"} {
		if now := lab.PIDs()[program]; now != pids[program] {
			t.Errorf("%s was started again", program)
		}
	}
	exits.Range(func(program, e any) bool {
		t.Errorf("the end of %s alarmed somebody: %+v", program, e)
		return true
	})
	steps.Range(func(name, _ any) bool {
		t.Errorf("the launch of %s by a restore is told as a step of the start", name)
		return true
	})
	record, err := sandbox.Lookup(stateDir, lab.Name())
	if err != nil || len(record.Restarts) > 0 {
		t.Errorf("a restore is taken for restarts: %v, %v", record, err)
	}
	onlyOf(t, lab, "task")
}

// expectRevisions: what was not touched is as old as it was, what was put back is newer than what was made later, and
// the checkpoint tells both from what changes from now on.
func expectRevisions(t *testing.T, c kubernetes.Interface, point *sandbox.Checkpoint, untouched, later *corev1.ConfigMap) {
	t.Helper()
	maps := c.CoreV1().ConfigMaps("default")
	same, err := maps.Get(t.Context(), untouched.Name, metav1.GetOptions{})
	if err != nil || same.ResourceVersion != untouched.ResourceVersion {
		t.Errorf("what nobody touched is %v, and was %v: %v", same, untouched, err)
	}
	back, err := maps.Get(t.Context(), "deleted", metav1.GetOptions{})
	if err != nil || !newer(t, back.ResourceVersion, later.ResourceVersion) || newer(t, back.ResourceVersion, fmt.Sprint(point.Revision())) {
		t.Errorf("what was put back at revision %d is %v, and %v was made before: %v", point.Revision(), back, later, err)
	}
	createMap(t, c, "since", "")
	since, err := maps.Get(t.Context(), "since", metav1.GetOptions{})
	if err != nil || !newer(t, since.ResourceVersion, fmt.Sprint(point.Revision())) {
		t.Errorf("what was made after revision %d is %v: %v", point.Revision(), since, err)
	}
}

// newer compares resource versions.
func newer(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y int64
	if _, err := fmt.Sscan(a+" "+b, &x, &y); err != nil {
		t.Fatal(err)
	}
	return x > y
}

// onlyOf fails if there is more on disk than finished checkpoints.
func onlyOf(t *testing.T, lab *sandbox.Sandbox, names ...string) {
	t.Helper()
	for _, name := range []string{"restoring", "restored", "undone"} {
		if _, err := os.Stat(filepath.Join(lab.Dir(), name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(lab.Dir(), "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		t.Errorf("there are checkpoints %v, not %v", found, names)
	}
}

// follower is an informer of ConfigMaps.
type follower struct{ store cache.Store }

func follow(t *testing.T, c kubernetes.Interface) follower {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.StartWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer does not see anything")
	}
	return follower{informer.GetStore()}
}

func (f follower) is(condition func(map[string]*corev1.ConfigMap) bool) func(context.Context) error {
	return func(context.Context) error {
		all := map[string]*corev1.ConfigMap{}
		for _, o := range f.store.List() {
			m := o.(*corev1.ConfigMap)
			all[m.Name] = m
		}
		if !condition(all) {
			return fmt.Errorf("it sees %d", len(all))
		}
		return nil
	}
}

// kubectlRun is kubectl that somebody left running.
type kubectlRun struct {
	*exec.Cmd
	out *output.Output
}

func kubectlWatch(t *testing.T, lab *sandbox.Sandbox) kubectlRun {
	t.Helper()
	w := kubectlRun{exec.CommandContext(t.Context(), filepath.Join(lab.Dir(), "bin", "kubectl"), "--kubeconfig", lab.Kubeconfig(), "get", "configmaps", "--watch"), &output.Output{}}
	w.Stdout, w.Stderr = w.out, w.out
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "kubectl to see what there is", func(context.Context) error {
		if !strings.Contains(w.out.String(), "later") {
			return errors.New(w.out.String())
		}
		return nil
	})
	return w
}

// sees: kubectl goes on, and is told of an object that was put back. It is ended then.
func (w kubectlRun) sees(t *testing.T, name string) {
	t.Helper()
	sandboxtest.Eventually(t, "kubectl to be told of "+name, func(context.Context) error {
		if !strings.Contains(w.out.String(), "\n"+name+" ") {
			return errors.New(w.out.String())
		}
		return nil
	})
	_ = w.Process.Kill()
	_ = w.Wait() // it was killed
}

// objects are a CRD with an object, an APIService, and a namespace with an object.
type objects struct {
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	was       map[schema.GroupVersionResource]*unstructured.Unstructured
}

func lessonObjects(t *testing.T, lab *sandbox.Sandbox) *objects {
	t.Helper()
	d, err := dynamic.NewForConfig(lab.Config())
	if err != nil {
		t.Fatal(err)
	}
	preserve := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "songs.music.example"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "music.example", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "songs", Singular: "song", Kind: "Song", ListKind: "SongList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
	if err := sandbox.InstallCRDs(t.Context(), lab.Config(), crd); err != nil {
		t.Fatal(err)
	}
	o := &objects{dynamic: d, discovery: discovery.NewDiscoveryClientForConfigOrDie(lab.Config()), was: map[schema.GroupVersionResource]*unstructured.Unstructured{}}
	o.make(t, namespaces, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "stage"}})
	o.make(t, songs, "stage", map[string]any{
		"apiVersion": "music.example/v1", "kind": "Song", "metadata": map[string]any{"name": "zundoko"}, "words": int64(5),
	})
	o.make(t, apiServices, "", map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.nobody.example"},
		"spec": map[string]any{
			"group": "nobody.example", "version": "v1", "groupPriorityMinimum": int64(10), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "stage", "name": "nobody"},
		},
	})
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if o.was[crds], err = d.Resource(crds).Get(t.Context(), crd.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	return o
}

var (
	songs       = schema.GroupVersionResource{Group: "music.example", Version: "v1", Resource: "songs"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

func (o *objects) make(t *testing.T, kind schema.GroupVersionResource, namespace string, content map[string]any) {
	t.Helper()
	made, err := o.dynamic.Resource(kind).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.was[kind] = made
}

// spoil deletes them all, and returns when they are gone.
func (o *objects) spoil(t *testing.T) {
	t.Helper()
	for kind, was := range o.was {
		if kind == songs {
			continue // it goes with its namespace or its CRD
		}
		if err := o.dynamic.Resource(kind).Delete(t.Context(), was.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for kind, was := range o.was {
		sandboxtest.Eventually(t, was.GetName()+" to be gone", func(ctx context.Context) error {
			_, err := o.dynamic.Resource(kind).Namespace(was.GetNamespace()).Get(ctx, was.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
	}
}

// expect fails if one is not there as it was, at once.
func (o *objects) expect(t *testing.T) {
	t.Helper()
	_, named, _, err := o.discovery.GroupsAndMaybeResources()
	if err != nil {
		t.Error(err)
	}
	for kind, was := range o.was {
		if list := named[kind.GroupVersion()]; list == nil || !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource }) {
			t.Errorf("kubectl would know no %s", kind.Resource)
		}
		now, err := o.dynamic.Resource(kind).Namespace(was.GetNamespace()).Get(t.Context(), was.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s %s is not back: %v", kind.Resource, was.GetName(), err)
			continue
		}
		if now.GetUID() != was.GetUID() || now.GetDeletionTimestamp() != nil {
			t.Errorf("%s %s is another one", kind.Resource, was.GetName())
		}
	}
}

// TestRevisionOfCheckpoint: what was written before has it or an earlier one, what is written later has a later one.
func TestRevisionOfCheckpoint(t *testing.T) {
	sandboxtest.Long(t)
	t.Parallel()
	lab := start(t, sandbox.Options{})
	c := clientset(t, lab)
	for i := range 5 {
		before := createMap(t, c, fmt.Sprint("before-", i), "")
		point := checkpoint(t, lab, "revision")
		after := createMap(t, c, fmt.Sprint("after-", i), "")
		at := fmt.Sprint(point.Revision())
		if newer(t, before.ResourceVersion, at) || !newer(t, after.ResourceVersion, at) {
			t.Errorf("revisions before, at and after a checkpoint: %s, %s, %s", before.ResourceVersion, at, after.ResourceVersion)
		}
	}
	onlyOf(t, lab, "revision")
}

// TestRestoreOfSeveral goes from one checkpoint to the other, and refuses one that another of its name has replaced.
func TestRestoreOfSeveral(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{})
	c := clientset(t, lab)
	empty := checkpoint(t, lab, "empty")
	one := createMap(t, c, "one", "")
	full := checkpoint(t, lab, "full")
	restore(t, lab, empty)
	if _, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in the checkpoint before it was made: %v", err)
	}
	restore(t, lab, full)
	if err := asThen(t.Context(), c, one); err != nil {
		t.Error(err)
	}
	checkpoint(t, lab, "empty")
	refused(t, lab, c, empty)
	onlyOf(t, lab, "empty", "full")
}

// refused fails unless a checkpoint cannot be restored, and that changes nothing.
func refused(t *testing.T, lab *sandbox.Sandbox, c kubernetes.Interface, point *sandbox.Checkpoint) {
	t.Helper()
	kept := createMap(t, c, "kept-"+strings.ToLower(filepath.Base(t.Name())), "now")
	pids := fmt.Sprint(lab.PIDs())
	err := lab.Checkpoints().Restore(t.Context(), point)
	if sandbox.HintOf(err) == "" || !strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("the error is %v, its hint %q", err, sandbox.HintOf(err))
	}
	if err := asThen(t.Context(), c, kept); err != nil {
		t.Error(err)
	}
	if now := fmt.Sprint(lab.PIDs()); now != pids {
		t.Errorf("the programs were %s, and are %s", pids, now)
	}
}

func TestDamagedCheckpoint(t *testing.T) {
	sandboxtest.Long(t)
	for name, damage := range map[string]func(file string) error{
		"gone": os.Remove,
		"half": truncateHalf,
		"changed": func(file string) error {
			b, err := os.ReadFile(file)
			if err == nil {
				b[len(b)/2] ^= 1
				err = os.WriteFile(file, b, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab := shared.Get(t)
			point := checkpoint(t, lab, "damaged")
			files, err := filepath.Glob(filepath.Join(lab.Dir(), "checkpoints", "damaged", "etcd-*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			if err := damage(files[0]); err != nil {
				t.Fatal(err)
			}
			refused(t, lab, clientset(t, lab), point)
		})
	}
}

func TestCheckpointsAreOurs(t *testing.T) {
	lab := shared.Get(t)
	checkpoint(t, lab, "mine")
	err := filepath.WalkDir(filepath.Join(lab.Dir(), "checkpoints"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may look into %s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "../other", "a/b", "A"} {
		if _, err := lab.Checkpoints().Save(t.Context(), name); sandbox.HintOf(err) == "" {
			t.Errorf("a checkpoint named %q: %v", name, err)
		}
	}
}
