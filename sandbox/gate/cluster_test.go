package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/gate"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// cluster is the API server of the tests that need a real one.
var cluster = sandboxtest.ShareAPIServer(func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return nil, nil })

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m, cluster)) }

// program is a program without taps behind a gate: it has a clientset, and a watch of the ConfigMaps of a namespace.
type program struct {
	*stand
	taps      *taps.Taps
	admin     kubernetes.Interface
	namespace string
	clientset kubernetes.Interface
	informers informers.SharedInformerFactory
}

// newProgram makes a namespace with a service account that may do everything with its ConfigMaps, and begins a run of a
// program with the rights of that account.
func newProgram(t *testing.T) *program {
	t.Helper()
	ctx, config := t.Context(), cluster.Get(t)
	admin, err := kubernetes.NewForConfig(config)
	must(t, err)
	ns, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gate-"}}, metav1.CreateOptions{})
	must(t, err)
	name := metav1.ObjectMeta{Namespace: ns.Name, Name: "pyop"}
	_, err = admin.CoreV1().ServiceAccounts(ns.Name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().Roles(ns.Name).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
	}}, metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().RoleBindings(ns.Name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pyop"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns.Name, Name: "pyop"}},
	}, metav1.CreateOptions{})
	must(t, err)
	token, err := admin.CoreV1().ServiceAccounts(ns.Name).CreateToken(ctx, "pyop", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	p := &program{admin: admin, namespace: ns.Name, stand: open(t, &rest.Config{
		Host: config.Host, BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData},
	})}
	p.taps = taps.New(p.journal, taps.Options{Operator: "pyop"})
	p.begin()
	return p
}

// begin begins a run: a new process with a new clientset and a new watch.
func (p *program) begin() {
	p.Helper()
	if p.informers != nil {
		p.informers.Shutdown()
	}
	p.live(gate.Run{Wrap: func(next http.RoundTripper) http.RoundTripper { return p.taps.Recorder(next, nil) }})
	var err error
	p.clientset, err = kubernetes.NewForConfig(p.config())
	must(p, err)
	p.informers = informers.NewSharedInformerFactoryWithOptions(p.clientset, 0, informers.WithNamespace(p.namespace))
	ctx, cancel := context.WithCancel(p.Context())
	informer := p.informers.Core().V1().ConfigMaps().Informer()
	go informer.RunWithContext(ctx)
	p.Cleanup(cancel)
	sandboxtest.Eventually(p, "the first list", informer.HasSynced)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// write creates or updates a ConfigMap.
func (p *program) write(c kubernetes.Interface, m *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if m.ResourceVersion == "" {
		return c.CoreV1().ConfigMaps(p.namespace).Create(p.Context(), m, metav1.CreateOptions{})
	}
	return c.CoreV1().ConfigMaps(p.namespace).Update(p.Context(), m, metav1.UpdateOptions{})
}

// await waits for an event and returns it.
func (p *program) await(what string, is func(*trace.Event) bool) (found *trace.Event) {
	p.Helper()
	sandboxtest.Eventually(p, what, func() bool {
		all := p.journal.Since(0)
		i := slices.IndexFunc(all, is)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"word": "Zun"}}
}

// TestProgram checks what the journal shows of a program that has only a clientset.
func TestProgram(t *testing.T) {
	p := newProgram(t)
	old, err := p.write(p.admin, configMap("old"))
	must(t, err)
	p.begin() // the second life finds it
	is := func(kind trace.Kind, verb, name string) func(*trace.Event) bool {
		return func(e *trace.Event) bool {
			return e.Kind == kind && e.Verb == verb && e.Object.Kind == "ConfigMap" && e.Object.Name == name
		}
	}
	p.await("the state", func(e *trace.Event) bool {
		return is(trace.KindWatch, trace.Added, "old")(e) && e.Initial && e.Cause == 0
	})
	song, err := p.write(p.clientset, configMap("song"))
	must(t, err)
	create := p.await("the create", is(trace.KindCall, trace.VerbCreate, "song"))
	added := p.await("its event", is(trace.KindWatch, trace.Added, "song"))
	timeline := trace.NewTimeline(p.journal)
	timeline.Update()
	if by := timeline.Tip().Cause(added); by == nil || by.Seq != create.Seq || added.Initial || added.ResourceVersion != song.ResourceVersion {
		t.Errorf("%+v because of %+v", added, by)
	}
	_, err = p.write(p.clientset, song)
	must(t, err)
	if e := p.await("the update", is(trace.KindCall, trace.VerbUpdate, "song")); !e.NoOp || e.Status != 200 || e.Before == nil {
		t.Errorf("%+v", e)
	}
	old.Data["word"] = "Doko"
	_, err = p.write(p.admin, old)
	must(t, err)
	if e := p.await("somebody's change", is(trace.KindWatch, trace.Modified, "old")); e.Cause != 0 || e.Before == nil {
		t.Errorf("%+v", e)
	}
	if _, err = p.write(p.clientset, old); !apierrors.IsConflict(err) {
		t.Error(err)
	}
	if e := p.await("the conflict", is(trace.KindCall, trace.VerbUpdate, "old")); e.Reason != "Conflict" || e.Status != 409 || e.Error == "" || e.After == nil {
		t.Errorf("%+v", e)
	}
	if _, err = p.clientset.CoreV1().Secrets(p.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	p.await("the missing right", func(e *trace.Event) bool {
		return e.Verb == trace.VerbList && e.Object.Kind == "Secret" && e.Status == 403 && e.Reason == "Forbidden"
	})
	all, err := p.clientset.CoreV1().ConfigMaps(p.namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if e := p.await("the list", is(trace.KindCall, trace.VerbList, "")); e.Count != len(all.Items) || e.Count < 2 {
		t.Errorf("%+v", e)
	}
}

// TestProgramFaults checks faults at calls of a program without taps.
func TestProgramFaults(t *testing.T) {
	p := newProgram(t)
	on := func(verb, name string) *v1alpha1.FaultMatch {
		return &v1alpha1.FaultMatch{Verbs: []string{verb}, Kind: "ConfigMap", Name: name}
	}
	arm := func(name string, spec v1alpha1.FaultSpec) {
		t.Helper()
		must(t, p.faults.Arm(name, spec))
	}
	times := func(name string) int32 {
		s, _ := p.faults.Status(name)
		return s.Times
	}
	arm("error", v1alpha1.FaultSpec{Match: on("create", "song"), API: &v1alpha1.APIFault{}})
	if _, err := p.write(p.clientset, configMap("song")); !apierrors.IsInternalError(err) {
		t.Error(err)
	}
	arm("delay", v1alpha1.FaultSpec{Match: on("create", "song"), API: &v1alpha1.APIFault{Delay: metav1.Duration{Duration: 3 * time.Millisecond}}})
	song, err := p.write(p.clientset, configMap("song"))
	must(t, err)
	arm("hold", v1alpha1.FaultSpec{Match: on("update", "song"), Hold: &v1alpha1.HoldFault{}})
	held := make(chan error, 1)
	go func() { _, err := p.write(p.clientset, song); held <- err }()
	sandboxtest.Eventually(t, "the held update", func() bool { return times("hold") == 1 })
	p.faults.Release("hold")
	must(t, <-held)
	arm("crash", v1alpha1.FaultSpec{Match: on("create", "late"), Crash: &v1alpha1.CrashFault{}})
	if _, err := p.write(p.clientset, configMap("late")); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		t.Errorf("the answer of a dead program: %v", err)
	}
	// The call ends when the program is dead, which is before the effects are asked for another life.
	sandboxtest.Eventually(t, "the crash", func() bool { return p.effects.crashes.Load() == 1 })
	if _, err := p.clientset.CoreV1().ConfigMaps(p.namespace).Get(t.Context(), "song", metav1.GetOptions{}); err == nil {
		t.Error("it lives")
	}
	p.begin()
	p.await("what the dead one made", func(e *trace.Event) bool {
		return e.Kind == trace.KindWatch && e.Object.Name == "late" && e.Initial
	})
	var story []string
	for _, e := range p.journal.Since(0) {
		switch {
		case e.Kind == trace.KindFault:
			story = append(story, e.Reason)
		case e.IsWrite() && e.Failed():
			story = append(story, "failed")
		case e.IsWrite():
			story = append(story, e.Verb)
		}
	}
	// The last create was stored, and its answer was lost.
	if got, want := fmt.Sprint(story), "[error failed delay create hold update create crash failed]"; got != want {
		t.Errorf("the journal has %s, want %s", got, want)
	}
}
