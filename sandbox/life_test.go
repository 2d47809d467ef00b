package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

func TestWhatASandboxHeldSurvives(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	for range 2 {
		lab := start(t, sandbox.Options{Name: "survivor"})
		maps := clientset(t, lab).CoreV1().ConfigMaps("default")
		list, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "kept=yes"})
		if err != nil {
			t.Fatal(err)
		}
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("config-", len(list.Items)), Labels: map[string]string{"kept": "yes"},
		}}
		if _, err := maps.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := os.ReadFile(lab.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		if err := lab.Stop(); err != nil {
			t.Fatal(err)
		}
		again := start(t, sandbox.Options{Name: "survivor"})
		if _, err := clientset(t, again).CoreV1().ConfigMaps("default").Get(t.Context(), config.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if now, err := os.ReadFile(again.Kubeconfig()); err != nil || string(now) != string(kubeconfig) {
			t.Errorf("the kubeconfig changed (%v): a copy of it would not work any more", err)
		}
		if err := again.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	fresh := start(t, sandbox.Options{Name: "survivor", Fresh: true})
	list, err := clientset(t, fresh).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{LabelSelector: "kept=yes"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("a fresh sandbox holds %d objects of before (%v)", len(list.Items), err)
	}
}

func TestEphemeralLeavesNothing(t *testing.T) {
	t.Parallel()
	lab := start(t, sandbox.Options{})
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lab.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v; want it gone", lab.Dir(), err)
	}
}

func TestAProgramThatDiesIsReportedAndComesBack(t *testing.T) {
	sandboxtest.Long(t)
	t.Parallel()
	exits := make(chan sandbox.Exit, 8)
	lab := start(t, sandbox.Options{OnExit: func(e sandbox.Exit) { exits <- e }})
	client := clientset(t, lab)
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "before-" + program}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pid := lab.PIDs()[program]
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e := <-exits; e.Program != program || !e.Restarted {
			t.Errorf("reported was %+v, killed was %s", e, program)
		}
		sandboxtest.Eventually(t, program+" to be back", func(ctx context.Context) error {
			if now := lab.PIDs()[program]; now == pid || now == 0 {
				return fmt.Errorf("its pid is %d", now)
			}
			_, err := client.CoreV1().ConfigMaps("default").Get(ctx, before.Name, metav1.GetOptions{})
			return err
		})
	}
	// All of them work again: the controllers collect, the API server serves, etcd stores.
	c := anyClient(t, lab)
	deletionPropagates(t, lab, c, namespace(t, c))
	podIsPendingWithAReason(t, lab, c, namespace(t, c))
}

func TestAProgramThatDoesNotStayUpEndsTheSandbox(t *testing.T) {
	t.Parallel()
	lab := start(t, sandbox.Options{})
	link := filepath.Join(lab.Dir(), "bin", "kube-scheduler")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/false", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(lab.PIDs()["kube-scheduler"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lab.Done():
		if err := lab.Err(); err == nil || !strings.Contains(err.Error(), "kube-scheduler") {
			t.Errorf("the reason is %v", err)
		}
	case <-time.After(sandboxtest.Patience):
		t.Error("nobody says that the scheduler does not stay up")
	}
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	start(t, sandbox.Options{Name: "taken"})
	_, err := sandbox.Start(t.Context(), sandbox.Options{Name: "taken", StateDir: stateDir})
	if !errors.Is(err, sandbox.ErrNameTaken) {
		t.Errorf("the second start: %v; want ErrNameTaken", err)
	}
	var problem *sandbox.Problem
	if !errors.As(err, &problem) || problem.Hint == "" {
		t.Error("it gives no hint")
	}
}

func TestSideBySide(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	const n = 4
	labs := make([]*sandbox.Sandbox, n)
	var wg sync.WaitGroup
	for i := range labs {
		wg.Go(func() {
			var err error
			labs[i], err = sandbox.Start(t.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	hosts := map[string]bool{}
	for _, lab := range labs {
		if lab == nil {
			continue
		}
		hosts[lab.Config().Host] = true
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}} // would exist in a shared one
		if _, err := clientset(t, lab).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	if len(hosts) != n {
		t.Errorf("%d sandboxes serve at %d addresses", n, len(hosts))
	}
	for _, lab := range labs {
		if lab != nil {
			wg.Go(func() {
				if err := lab.Stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}

// TestCancelledStart interrupts starts at moments spread over a whole start.
func TestCancelledStart(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	start(t, sandbox.Options{}) // so that data is prepared
	for i := range 8 {
		after := time.Duration(i) * 200 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), after)
		lab, err := sandbox.Start(ctx, sandbox.Options{StateDir: stateDir, Name: "cancelled", Ephemeral: true})
		cancel()
		if err == nil {
			err = lab.Stop() // it was faster
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if err != nil {
			t.Errorf("cancelled after %v: %v", after, err)
		}
		dir := filepath.Join(stateDir, "sandboxes", "cancelled")
		if left := programs(dir); len(left) > 0 {
			t.Errorf("cancelled after %v: processes %v are left", after, left)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("cancelled after %v: %s is left", after, dir)
		}
	}
}

func TestDamagedState(t *testing.T) {
	sandboxtest.Long(t)
	for name, damage := range map[string]func(dir string) error{
		"record": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "sandbox.json"), []byte("{\"name\": "), 0o600)
		},
		"pki": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "pki", "ca.key"), []byte("no key"), 0o600)
		},
		"etcd": func(dir string) error { return truncateHalf(filepath.Join(dir, "etcd", "member", "snap", "db")) },
		"wal":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, "etcd", "member", "wal")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab := start(t, sandbox.Options{Name: "damaged-" + name})
			if err := lab.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := damage(lab.Dir()); err != nil {
				t.Fatal(err)
			}
			again, err := sandbox.Start(t.Context(), sandbox.Options{StateDir: stateDir, Name: lab.Name()})
			if err == nil {
				_ = again.Stop()
				t.Skip("it healed")
			}
			var problem *sandbox.Problem
			if !errors.As(err, &problem) || !strings.Contains(problem.Hint, "--fresh") {
				t.Errorf("the error is %v; want one whose hint says --fresh", err)
			}
			if left := programs(lab.Dir()); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
			start(t, sandbox.Options{Name: lab.Name(), Fresh: true})
		})
	}
}

func truncateHalf(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.Truncate(file, info.Size()/2)
}

func TestDamagedPreparedDataIsMadeAgain(t *testing.T) {
	sandboxtest.Long(t)
	if err := start(t, sandbox.Options{}).Stop(); err != nil { // which waits for the preparation
		t.Fatal(err)
	}
	originals, err := filepath.Glob(filepath.Join(stateDir, "prepared", "*", "member", "snap", "db"))
	if err != nil || len(originals) == 0 {
		t.Fatal("there is no prepared data", err)
	}
	for _, original := range originals {
		if err := truncateHalf(original); err != nil {
			t.Fatal(err)
		}
	}
	lab := start(t, sandbox.Options{})
	if _, err := clientset(t, lab).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, prepared := startPrepared(t, sandbox.Options{}); !prepared {
		t.Error("the data was not prepared again")
	}
}

// startPrepared starts a sandbox and reports whether it started from prepared data: then it installs no CRDs.
func startPrepared(t *testing.T, o sandbox.Options) (lab *sandbox.Sandbox, prepared bool) {
	t.Helper()
	var installed atomic.Bool
	o.Progress = func(s sandbox.Step) { // programs call it side by side
		if s.Name == "crds" {
			installed.Store(true)
		}
	}
	lab = start(t, o)
	return lab, !installed.Load()
}

// TestFirstStartPreparesTheNext compares a sandbox that starts with nothing with one that starts with what it has left.
func TestFirstStartPreparesTheNext(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	state := t.TempDir()
	var held []map[string]bool
	for _, wanted := range []bool{false, true} {
		lab, prepared := startPrepared(t, sandbox.Options{
			StateDir: state, CRDs: []*apiextensionsv1.CustomResourceDefinition{things("first.example.com")},
		})
		if prepared != wanted {
			t.Errorf("prepared: %v, want %v", prepared, wanted)
		}
		held = append(held, lasting(t, lab))
		c, err := client.New(lab.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		create(t, c, thing("first.example.com", "default", "a"))
		if err := lab.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(held[0], held[1]); diff != "" || len(held[0]) < 100 {
		t.Errorf("%d objects; -: of the first sandbox, +: of the second\n%s", len(held[0]), diff)
	}
}

// lasting returns the names of all objects but those of kinds of which an API server, controllers or nodes make some for each
// run.
func lasting(t *testing.T, lab *sandbox.Sandbox) map[string]bool {
	t.Helper()
	reader, err := metadata.NewForConfig(lab.Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := clientset(t, lab).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	ofOneRun := []string{"configmaps", "endpoints", "endpointslices", "events", "leases", "serviceaccounts"}
	held := map[string]bool{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range list.APIResources {
			if slices.Contains(ofOneRun, kind.Name) {
				continue
			}
			objects, err := reader.Resource(gv.WithResource(kind.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects.Items {
				held[kind.Name+" "+o.Namespace+"/"+o.Name] = true
			}
		}
	}
	return held
}

func TestUnusableStateDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sandbox.Start(t.Context(), sandbox.Options{StateDir: filepath.Join(file, "state")})
	var problem *sandbox.Problem
	if !errors.As(err, &problem) || !strings.Contains(problem.Hint, "OPERATOR_LAB_STATE_DIR") {
		t.Errorf("the error is %v; want a hint at OPERATOR_LAB_STATE_DIR", err)
	}
}

func TestTakenPortIsReplaced(t *testing.T) {
	sandboxtest.Long(t)
	t.Parallel()
	lab := start(t, sandbox.Options{Name: "ports"})
	host := strings.TrimPrefix(lab.Config().Host, "https://")
	if err := lab.Stop(); err != nil {
		t.Fatal(err)
	}
	taker := listen(t, host)
	defer func() { _ = taker.Close() }()
	again := start(t, sandbox.Options{Name: "ports"})
	if again.Config().Host == lab.Config().Host {
		t.Error("two programs serve at one address")
	}
	if _, err := clientset(t, again).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// TestKilledLab kills the lab, or one of its programs, with SIGKILL at random moments and starts it again: nothing is
// left, and it always starts. OPERATOR_LAB_CHAOS sets the number of rounds.
func TestKilledLab(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	rounds := 6
	if s := os.Getenv("OPERATOR_LAB_CHAOS"); s != "" {
		if _, err := fmt.Sscan(s, &rounds); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(stateDir, "sandboxes", "chaos")
	for round := range rounds {
		child := up(t, "chaos")
		delay := time.Duration(random.IntN(2500)) * time.Millisecond
		select {
		case <-child.exited:
		case <-time.After(delay):
		}
		victim := "lab"
		if alive := programs(dir); random.IntN(3) == 0 && len(alive) > 0 {
			victim = "program"
			_ = syscall.Kill(alive[random.IntN(len(alive))], syscall.SIGKILL)
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) //nolint:forbidigo // chaos: a random moment is the point
		}
		child.kill()
		sandboxtest.Eventually(t, fmt.Sprintf("round %d: %s killed after %v: no process", round, victim, delay), func(context.Context) error {
			if left := programs(dir); len(left) > 0 {
				return fmt.Errorf("processes %v are left", left)
			}
			if left := listeners(t, dir); len(left) > 0 {
				return fmt.Errorf("ports %v are still open", left)
			}
			return nil
		})
	}
	start(t, sandbox.Options{Name: "chaos"})
}

// TestKilledDemoIsCleared: 'run' starts fresh and ephemeral. Its programs are known to be alive, and what a killed one
// left on disk is gone after the next start of any sandbox.
func TestKilledDemoIsCleared(t *testing.T) {
	sandboxtest.Long(t)
	dir := filepath.Join(stateDir, "sandboxes", "demo")
	demo := launch(t, "run", "zundoko", "--plain", "--name", "demo", "--interval", "1h")
	sandboxtest.Eventually(t, "the demo's sandbox to be ready", readyIn("demo"))
	if guard.Gone(filepath.Join(dir, "bin")) {
		t.Error("the programs are alive, and nobody can tell")
	}
	demo.kill()
	sandboxtest.Eventually(t, "its programs to end", func(context.Context) error {
		if !guard.Gone(filepath.Join(dir, "bin")) {
			return errors.New("they are alive")
		}
		return nil
	})
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err) // then this test shows nothing
	}
	start(t, sandbox.Options{})
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left of a killed lab (%v)", dir, err)
	}
}
