package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// stateDir is shared by the tests of this package, so that the first data is prepared once.
var stateDir string

// shared is a sandbox without nodes, for tests that neither stop it nor change what others rely on.
var shared = sandboxtest.Share(func(ctx context.Context) (*sandbox.Sandbox, func() error, error) {
	lab, err := sandbox.Start(ctx, sandbox.Options{StateDir: stateDir, Ephemeral: true})
	if err != nil {
		return nil, nil, err
	}
	return lab, lab.Stop, nil
})

func TestMain(m *testing.M) {
	if program, ok := podPrograms[os.Getenv(asProgram)]; ok {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // a process of its own
		code := program(ctx)
		stop()
		os.Exit(code)
	}
	log.SetLogger(logr.Discard()) // or controller-runtime complains in the middle of a benchmark's line
	if _, err := sandbox.FindBinary(); err != nil {
		fmt.Printf("skipping the tests of sandbox: %v; 'make test' builds it\n", err)
		os.Exit(0)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	stateDir = dir
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Println(err)
		code = 1
	}
	if left := programs(dir); len(left) > 0 {
		fmt.Println("processes are left:", left)
		return 1
	}
	return code
}

// start starts a sandbox that ends with the test.
func start(t *testing.T, o sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	if o.StateDir == "" {
		o.StateDir = stateDir
	}
	if o.Name == "" {
		o.Ephemeral = true
	}
	lab, err := sandbox.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

func clientset(t *testing.T, lab *sandbox.Sandbox) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(lab.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// programs lists the pids of processes that were started by a link below dir. It looks into /proc; elsewhere it finds
// nothing.
func programs(dir string) []int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var pids []int
	for _, line := range lines {
		b, err := os.ReadFile(line)
		if err != nil || !strings.HasPrefix(string(b), dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
