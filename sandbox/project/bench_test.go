package project_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/remote"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/usage"
)

// median returns the middle one.
func median(seconds []float64) float64 {
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}

// inTurns calls functions that return seconds n times, each time in another order, so that all meet the same noise of the
// machine. It returns their medians.
func inTurns(n int, ways ...func() float64) (medians []float64) {
	took := make([][]float64, len(ways))
	for i := range n {
		for j := range ways {
			way := (i + j) % len(ways)
			took[way] = append(took[way], ways[way]())
		}
	}
	for _, seconds := range took {
		medians = append(medians, median(seconds))
	}
	return medians
}

func took(b *testing.B, f func() error) float64 {
	b.Helper()
	began := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began).Seconds()
}

// begun writes the project that 'operator-lab new operator' makes, as a module with the dependencies of this one.
func begun(b *testing.B) (dir string) {
	b.Helper()
	b.Setenv("GOGC", "100") // what users have
	binary, err := sandbox.FindBinary()
	if err != nil {
		b.Skip(err)
	}
	parent := b.TempDir()
	if out, err := exec.CommandContext(b.Context(), binary, "new", "operator", "cafe", "--dir", parent).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	dir = filepath.Join(parent, "cafe")
	writeModule(b, dir, "example.com/cafe")
	return dir
}

// change makes a file differ from all that was compiled before.
func change(b *testing.B, file string) {
	b.Helper()
	write(b, file, []byte(read(b, file)+fmt.Sprintf("\nvar _ = %d\n", time.Now().UnixNano())))
}

// BenchmarkFind is how long it takes to find out what is in a project: again, when nothing has changed, and without what
// was remembered.
func BenchmarkFind(b *testing.B) {
	dir, work := begun(b), b.TempDir()
	discover := func() error {
		_, err := project.Find(b.Context(), project.Options{Dir: dir, WorkDir: work})
		return err
	}
	took(b, discover)
	t := inTurns(b.N, func() float64 { return took(b, discover) }, func() float64 {
		if err := os.Remove(filepath.Join(work, "project.json")); err != nil {
			b.Fatal(err)
		}
		return took(b, discover)
	})
	b.ReportMetric(t[0], "warm-s")
	b.ReportMetric(t[1], "anew-s")
}

// BenchmarkBuild is how long a build takes after a change of the main package: plain and with the taps, in turns.
func BenchmarkBuild(b *testing.B) {
	dir := begun(b)
	build := func(o project.BuildOptions) func() float64 {
		p := find(b, project.Options{Dir: dir})
		again := func() float64 {
			change(b, filepath.Join(dir, "main.go"))
			return took(b, func() error {
				_, err := p.Build(b.Context(), o)
				return err
			})
		}
		again()
		return again
	}
	t := inTurns(b.N, build(project.BuildOptions{Plain: true}), build(project.BuildOptions{}))
	b.ReportMetric(t[0], "plain-s")
	b.ReportMetric(t[1], "taps-s")
	b.ReportMetric(t[1]/t[0], "build-ratio")
}

var builtAgain = regexp.MustCompile(`built again in ([0-9.]+)s`)

// BenchmarkSave is the time from a save of a file, in 'operator-lab run --watch', until the first reconcile of the next
// life is shown: all of it, and without the build.
func BenchmarkSave(b *testing.B) {
	dir := begun(b)
	binary, err := sandbox.FindBinary()
	if err != nil {
		b.Skip(err)
	}
	ctx, end := context.WithCancel(b.Context())
	defer end()
	cmd := exec.CommandContext(ctx, binary, "run", dir, "--plain", "--watch", "--apply")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	// until reads what is shown until a line that begins with a text.
	until := func(begin string) (line string) {
		b.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), begin) {
				return lines.Text()
			}
		}
		b.Fatalf("the run has ended before %q\n%s", begin, said.String())
		return ""
	}
	until("#1 ")
	var whole, without []float64
	for range b.N {
		change(b, filepath.Join(dir, "controller", "controller.go"))
		saved := time.Now()
		built := builtAgain.FindStringSubmatch(until("note   built again"))
		until("#")
		shown := time.Since(saved).Seconds()
		if built == nil {
			b.Fatal("the time of the build is not shown")
		}
		build, _ := strconv.ParseFloat(built[1], 64)
		whole, without = append(whole, shown), append(without, shown-build)
	}
	end()
	for lines.Scan() { // the run says more until it ends
	}
	_ = cmd.Wait() // interrupted
	b.ReportMetric(median(whole), "save-to-reconcile-s")
	b.ReportMetric(median(without), "without-build-s")
}

// batch is the number of reconciles after which the next operator has its turn.
const batch = 100

// BenchmarkReconciles lets the same busy operator reconcile at a real API server, in processes of its own, in turns: as
// it is, with the taps and a journal that comes over the socket, and as a lab runs it, which is behind the gate too.
func BenchmarkReconciles(b *testing.B) {
	b.Setenv("GOGC", "100") // what users have
	dir := unpack(b, "counter")
	writeModule(b, dir, "example.com/counter")
	plain, tapped := find(b, project.Options{Dir: dir}), find(b, project.Options{Dir: dir})
	build := func(p *project.Project, o project.BuildOptions) string {
		binary, err := p.Build(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		return binary
	}
	klog.LogToStderr(false) // its lines would cut that of the result
	klog.SetOutput(io.Discard)
	box, err := sandbox.Start(b.Context(), sandbox.Options{Ephemeral: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = box.Stop() }()
	alone, aloneUsed := startAlone(b, box, build(plain, project.BuildOptions{Plain: true}), false)
	linked, linkedUsed := startAlone(b, box, build(tapped, project.BuildOptions{}), true)
	inLab := startInLab(b, box, tapped)
	before := []time.Duration{aloneUsed(), linkedUsed()}
	t := inTurns(b.N, alone, linked, inLab)
	// CPU time of the program itself, which other work on the machine changes less.
	each := func(used time.Duration) float64 { return used.Seconds() * 1e6 / float64(b.N*batch) }
	own, withTaps := each(aloneUsed()-before[0]), each(linkedUsed()-before[1])
	b.ReportMetric(own, "plain-cpu-µs")
	b.ReportMetric(withTaps, "taps-cpu-µs")
	for i, way := range []string{"plain", "taps", "lab"} {
		b.ReportMetric(1/t[i], way+"/s")
		if i > 0 {
			b.ReportMetric((t[i]/t[0]-1)*100, way+"-%added")
		}
	}
}

// startAlone runs a program against a sandbox, linked with a journal of this process or not. used is its CPU time; 0: the system does
// not tell.
func startAlone(b *testing.B, box *sandbox.Sandbox, program string, linked bool) (reconcile func() float64, used func() time.Duration) {
	b.Helper()
	space, reconcile := counting(b, box)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+box.Kubeconfig(), "NAMESPACE="+space)
	served := make(chan error, 1)
	if linked {
		socket := filepath.Join(b.TempDir(), "link")
		listener, err := net.Listen("unix", socket)
		if err != nil {
			b.Fatal(err)
		}
		cmd.Env = append(cmd.Env, link.SocketVariable+"="+socket)
		go func() {
			conn, err := listener.Accept()
			err = errors.Join(err, listener.Close())
			if err == nil {
				err = remote.New(trace.New(trace.Options{}), "counter").Serve(conn, link.Settings{})
			}
			served <- err
		}()
	} else {
		served <- nil
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		err := cmd.Process.Signal(os.Interrupt)
		if err = errors.Join(err, cmd.Wait(), <-served); err != nil {
			b.Error(err)
		}
	})
	reconcile() // begins when it serves
	return reconcile, func() time.Duration {
		all, err := usage.Look()
		if err != nil {
			return 0
		}
		of, _ := all.OfTree(cmd.Process.Pid)
		return of.CPU
	}
}

// startInLab runs a project in a lab.
func startInLab(b *testing.B, box *sandbox.Sandbox, p *project.Project) func() float64 {
	b.Helper()
	space, reconcile := counting(b, box)
	operator := project.NewOperator(project.OperatorOptions{Project: p, Plan: plan(b, p), Env: []string{"NAMESPACE=" + space}})
	b.Cleanup(operator.Close)
	l, err := lab.Open(b.Context(), lab.Options{Cluster: box, Programs: []lab.Program{operator}})
	if err == nil {
		b.Cleanup(func() { _ = l.Close(context.WithoutCancel(b.Context())) })
		_, err = l.Load(b.Context(), p.Name, v1alpha1.OperatorSpec{})
	}
	if err != nil {
		b.Fatal(err)
	}
	reconcile()
	return reconcile
}

// counting makes a namespace for the operator. The returned function lets it reconcile for a batch, and returns the
// seconds that one reconcile took.
func counting(b *testing.B, box *sandbox.Sandbox) (space string, reconcile func() float64) {
	b.Helper()
	client, err := kubernetes.NewForConfig(box.Config())
	if err != nil {
		b.Fatal(err)
	}
	made, err := client.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps(made.Name)
	counter := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counter"}}
	if _, err := maps.Create(b.Context(), counter, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	goal := 0
	return made.Name, func() float64 {
		goal += batch
		return took(b, func() error { return count(b.Context(), maps, goal) }) / batch
	}
}

// count gives the operator a goal, and waits until it is reached.
func count(ctx context.Context, maps typedcorev1.ConfigMapInterface, goal int) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"goal":"%d"},"labels":{"done":null}}}`, goal)
	given, err := maps.Patch(ctx, "counter", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	done, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "done", ResourceVersion: given.ResourceVersion})
	if err != nil {
		return err
	}
	defer done.Stop()
	if _, open := <-done.ResultChan(); !open {
		return errors.New("the watch has ended")
	}
	return nil
}
