package labapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/labapi"
)

// cluster is shared by the tests of this package; each test uses its own names.
var cluster *sandbox.Sandbox

// stateDir holds the sandboxes.
var stateDir string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if _, err := sandbox.FindBinary(); err != nil {
		fmt.Printf("skipping the tests of labapi: %v; 'make test' builds it\n", err)
		os.Exit(0)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "labapi")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	stateDir = dir
	cluster, err = sandbox.Start(context.Background(), sandbox.Options{StateDir: dir, Ephemeral: true}) //nolint:forbidigo // there is no test yet
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if err := cluster.Stop(); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// serve serves a backend in the shared cluster until the test ends.
func serve(tb testing.TB, b labapi.Backend) *labapi.Server {
	tb.Helper()
	return serveIn(tb, cluster, b)
}

func serveIn(tb testing.TB, in *sandbox.Sandbox, b labapi.Backend) *labapi.Server {
	tb.Helper()
	s, err := labapi.Start(tb.Context(), in.Config(), labapi.Options{Backend: b})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// kubectl runs the lab's kubectl on the shared cluster, and returns its output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	said, err := try(t, "", args...)
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, said)
	}
	return said
}

// refused runs a kubectl that must fail, and returns its output.
func refused(t *testing.T, input string, args ...string) string {
	t.Helper()
	said, err := try(t, input, args...)
	if err == nil {
		t.Fatalf("kubectl %v did not fail:\n%s", args, said)
	}
	return said
}

func try(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := command(t, args...)
	cmd.Stdin = bytes.NewBufferString(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"kubectl"}, args...)...)
	cmd.Args = append([]string{binary, "kubectl", "--kubeconfig", cluster.Kubeconfig()}, args...)
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(cluster.Dir(), "kubectl"), "OPERATOR_LAB_STATE_DIR="+stateDir)
	return cmd
}

// lab is a backend for tests: maps, with a broadcast of changes.
type lab struct {
	mu        sync.Mutex
	operators map[string]v1alpha1.Operator
	loops     []v1alpha1.Loop
	faults    map[string]v1alpha1.FaultStatus
	refuses   error
	ch        chan struct{}
}

func newLab() *lab {
	l := &lab{operators: map[string]v1alpha1.Operator{}, faults: map[string]v1alpha1.FaultStatus{}, ch: make(chan struct{})}
	l.operators["zundoko"] = operator("zundoko", v1alpha1.OperatorSpec{Variant: "hardened"})
	return l
}

func operator(name string, spec v1alpha1.OperatorSpec) v1alpha1.Operator {
	o := v1alpha1.Operator{Spec: spec}
	o.Name, o.Generation = name, 1
	o.Status = v1alpha1.OperatorStatus{ObservedGeneration: 1, State: v1alpha1.OperatorRunning, Controllers: []string{"hikawa"}, Version: "test"}
	return o
}

func loop(namespace, name, operator string) v1alpha1.Loop {
	l := v1alpha1.Loop{Spec: v1alpha1.LoopSpec{Operator: operator, Controller: "hikawa", Key: namespace + "/" + name}}
	l.Namespace, l.Name = namespace, "hikawa."+name
	l.Status.Reconciles, l.Status.Quiet = 1, true
	l.Status.Last = v1alpha1.LoopLast{Outcome: "done", Cause: "it was created"}
	return l
}

// loaded returns an operator of the backend.
func (l *lab) loaded(name string) (v1alpha1.Operator, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, there := l.operators[name]
	return o, there
}

// change changes the backend and notifies the server.
func (l *lab) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.ch)
	l.ch = make(chan struct{})
}

func (l *lab) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ch
}

func (l *lab) Operators() []v1alpha1.Operator {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []v1alpha1.Operator
	for _, o := range l.operators {
		all = append(all, *o.DeepCopy())
	}
	return all
}

func (l *lab) ValidateOperator(name string, spec v1alpha1.OperatorSpec) field.ErrorList {
	var problems field.ErrorList
	if name != "zundoko" && name != "other" {
		problems = append(problems, field.NotSupported(field.NewPath("metadata", "name"), name, []string{"zundoko", "other"}))
	}
	if spec.Variant != "" && spec.Variant != "hardened" && spec.Variant != "classic" {
		problems = append(problems, field.NotSupported(field.NewPath("spec", "variant"), spec.Variant, []string{"classic", "hardened"}))
	}
	return problems
}

func (l *lab) ApplyOperator(name string, spec v1alpha1.OperatorSpec) error {
	l.mu.Lock()
	refuses := l.refuses
	l.mu.Unlock()
	if refuses != nil {
		return refuses
	}
	l.change(func() {
		if spec.Variant == "" {
			spec.Variant = "hardened"
		}
		was, there := l.operators[name]
		o := operator(name, spec)
		if there {
			o.Generation = was.Generation + 1
			o.Status.ObservedGeneration, o.Status.Restarts = o.Generation, was.Status.Restarts+1
		}
		l.operators[name] = o
	})
	return nil
}

func (l *lab) DeleteOperator(name string) error {
	l.change(func() { delete(l.operators, name) })
	return nil
}

func (l *lab) OperatorMetrics(name string) ([]byte, error) {
	if _, there := l.loaded(name); !there {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("operators").GroupResource(), name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return []byte("up 1\n"), l.refuses
}

func (l *lab) Loops() []v1alpha1.Loop {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []v1alpha1.Loop
	for i := range l.loops {
		all = append(all, *l.loops[i].DeepCopy())
	}
	return all
}

func (l *lab) ValidateFault(spec v1alpha1.FaultSpec) field.ErrorList {
	if spec.Crash == nil && spec.Hold == nil && spec.API == nil && spec.Watch == nil && spec.Conflict == nil && spec.ControlPlane == nil &&
		spec.Pod == nil && spec.Node == nil && spec.Image == nil {
		return field.ErrorList{field.Required(field.NewPath("spec"), "one of crash, hold, api, watch, conflict, controlPlane, pod, node and image")}
	}
	return nil
}

func (l *lab) ArmFault(name string, _ v1alpha1.FaultSpec) error {
	l.phase(name, v1alpha1.FaultArmed)
	return nil
}

func (l *lab) ReleaseFault(name string) error {
	if l.phaseOf(name) == "" {
		return apierrors.NewBadRequest("nothing of that name is armed")
	}
	l.phase(name, v1alpha1.FaultReleased)
	return nil
}

func (l *lab) phase(name string, phase v1alpha1.FaultPhase) {
	l.change(func() {
		s := l.faults[name]
		s.Phase = phase
		l.faults[name] = s
	})
}

func (l *lab) DisarmFault(name string) error {
	if l.phaseOf(name) == "" {
		return errors.New("nothing of that name is armed")
	}
	l.change(func() { delete(l.faults, name) })
	return nil
}

func (l *lab) FaultStatus(name string) (v1alpha1.FaultStatus, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.faults[name]
	return *s.DeepCopy(), known
}

// phaseOf returns the phase of a fault; empty if it does not exist.
func (l *lab) phaseOf(name string) v1alpha1.FaultPhase {
	s, _ := l.FaultStatus(name)
	return s.Phase
}
