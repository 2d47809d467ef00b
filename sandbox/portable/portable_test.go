package portable_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/portable"
	"github.com/operator-lab/operator-lab/sandbox/remote"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

var cluster = sandboxtest.ShareSandbox(func() (sandbox.Options, error) { return sandbox.Options{}, nil })

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m, cluster)) }

// releases is the variable with the releases of controller-runtime that TestReleases tries, such as "v0.19.7 v0.25.2".
const releases = "OPERATOR_LAB_COMPAT"

// TestReleases builds an operator with the taps and each release, as somebody else's module has it, and runs it.
func TestReleases(t *testing.T) {
	all := strings.Fields(os.Getenv(releases))
	if len(all) == 0 {
		t.Skip(releases + " names no release; 'make compat' does")
	}
	for _, release := range all {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			program := buildToy(t, release)
			journal := runToy(t, program)
			wantCopied(t, journal)
		})
	}
}

// buildToy builds testdata/toy as a module that requires a release.
func buildToy(t *testing.T, release string) (program string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goTool := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "CGO_ENABLED=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, stderr.Bytes())
		}
		return strings.TrimSpace(string(out))
	}
	main, err := os.ReadFile(filepath.Join("testdata", "toy", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	write("go.mod", []byte("module toy\n\ngo 1.22.0\n\nrequire sigs.k8s.io/controller-runtime "+release+"\n"))
	write("main.go", main)
	goTool("mod", "download", "sigs.k8s.io/controller-runtime")
	files, err := portable.Files(goTool("list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"), "toy/lab")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		write("lab/"+name, content)
	}
	goTool("mod", "tidy")
	program = filepath.Join(dir, "operator")
	goTool("build", "-o", program, ".")
	return program
}

// runToy runs the operator until it has copied a ConfigMap, and returns the journal that the lab has of it. In between it
// is paused, and told to go on.
func runToy(t *testing.T, program string) *trace.Journal {
	t.Helper()
	box := cluster.Get(t)
	ns := sandboxtest.NewNamespace(t, box.Config(), clientgoscheme.Scheme)
	journal := trace.New(trace.Options{})
	sandboxtest.LogJournal(t, journal)
	loop := remote.New(journal, "toy")
	socket, served := listen(t, loop)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+box.Kubeconfig(), "NAMESPACE="+ns.Name, link.SocketVariable+"="+socket)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := loop.AwaitServing(t.Context()); err != nil {
		t.Fatal(err)
	}
	loop.Pause()
	meta := metav1.ObjectMeta{Namespace: ns.Name, Name: "one", Labels: map[string]string{"copy": "me"}}
	ns.MustCreate(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "b"}})
	timeline := trace.NewTimeline(journal)
	sandboxtest.Eventually(t, "the key waits", func() bool {
		timeline.Update()
		return slices.ContainsFunc(timeline.Tip().Queue(), func(i *trace.Item) bool { return i.Key.Name == "one" })
	})
	loop.Resume()
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "one-copy"}}
	sandboxtest.Eventually(t, "the copy is there", func() bool { return ns.Exists(copied) })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	return journal
}

// listen serves one process at a socket.
func listen(t *testing.T, loop *remote.Taps) (socket string, served <-chan error) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "link")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	result := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = loop.Serve(conn, link.Settings{})
		}
		result <- err
	}()
	return socket, result
}

// wantCopied checks that the journal has the reconcile that made the copy, from the watch event that caused it to its
// end.
func wantCopied(t *testing.T, journal *trace.Journal) {
	t.Helper()
	events := journal.Since(0)
	for _, create := range events {
		if create.Kind != trace.KindCall || create.Verb != trace.VerbCreate || create.Object.Name != "one-copy" {
			continue
		}
		var read, logged bool
		var outcome trace.Outcome
		for _, e := range events {
			if e.Reconcile != create.Reconcile {
				continue
			}
			switch e.Kind {
			case trace.KindCall:
				read = read || e.Verb == trace.VerbGet && e.Source == trace.Cache
			case trace.KindLog:
				logged = logged || e.Message == "copying"
			case trace.KindEnd:
				outcome = e.Outcome
			}
		}
		if !read || !logged || outcome != trace.OutcomeDone {
			t.Errorf("read from the cache: %t, logged: %t, ended %q", read, logged, outcome)
		}
		causes := map[trace.Kind]bool{}
		for seq := create.Cause; seq > 0; seq = journal.Get(seq).Cause {
			causes[journal.Get(seq).Kind] = true
		}
		for _, kind := range []trace.Kind{trace.KindStart, trace.KindDequeue, trace.KindEnqueue, trace.KindWatch} {
			if !causes[kind] {
				t.Errorf("no %s among what caused the create: %v", kind, causes)
			}
		}
		return
	}
	t.Error("the journal has no create of the copy")
}
