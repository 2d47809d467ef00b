package sandbox_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// series collects durations; what is reported is their median.
type series []time.Duration

func (s *series) time(f func()) {
	began := time.Now()
	f()
	*s = append(*s, time.Since(began))
}

func (s series) median() time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

func report(b *testing.B, name string, s series) {
	b.ReportMetric(float64(s.median().Microseconds())/1000, name+"-ms")
}

// BenchmarkStart compares, in turns, the start of a sandbox, which is over when controllers and scheduler work, with
// the start of a plain envtest on the same binary, which has neither.
func BenchmarkStart(b *testing.B) {
	assets := assets(b)
	warm(b)
	var plain, lab, plainStop, labStop series
	for range b.N {
		env := &envtest.Environment{BinaryAssetsDirectory: assets}
		var config *rest.Config
		plain.time(func() { config = must(b, env.Start) })
		firstWrite(b, config)
		plainStop.time(func() { check(b, env.Stop()) })

		var s *sandbox.Sandbox
		lab.time(func() {
			s = must(b, func() (*sandbox.Sandbox, error) {
				return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true})
			})
		})
		firstWrite(b, s.Config())
		labStop.time(func() { check(b, s.Stop()) })
	}
	report(b, "envtest-start", plain)
	report(b, "lab-start", lab)
	b.ReportMetric(float64(lab.median())/float64(plain.median()), "start-ratio")
	report(b, "envtest-stop", plainStop)
	report(b, "lab-stop", labStop)
}

// BenchmarkStartParts says where the time of a start goes: each is the time from the beginning until the part is up.
func BenchmarkStartParts(b *testing.B) {
	warm(b)
	parts := map[string]*series{}
	for range b.N {
		s := must(b, func() (*sandbox.Sandbox, error) {
			return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true, Progress: func(step sandbox.Step) {
				if parts[step.Name] == nil {
					parts[step.Name] = &series{}
				}
				*parts[step.Name] = append(*parts[step.Name], step.Took)
			}})
		})
		check(b, s.Stop())
	}
	for name, s := range parts {
		report(b, name, *s)
	}
}

// BenchmarkFirstReconcile is the time from the command to the first reconcile on the screen.
func BenchmarkFirstReconcile(b *testing.B) {
	binary := must(b, sandbox.FindBinary)
	var first, whole series
	for i := range b.N + 1 {
		cmd := exec.Command(binary, "run", "zundoko", "--plain", "--quiet", "--interval", "1ms", "--song", "Zun,Zun,Zun,Zun,Doko")
		cmd.Env = append(os.Environ(), "OPERATOR_LAB_STATE_DIR="+stateDir)
		seen := &firstMatch{began: time.Now(), word: "#1 "}
		cmd.Stdout = seen
		check(b, cmd.Run())
		if i == 0 {
			continue // prepares the data
		}
		first, whole = append(first, seen.after), append(whole, time.Since(seen.began))
	}
	report(b, "first-reconcile", first)
	report(b, "whole-song-of-5", whole)
}

// firstMatch notes when a word is written for the first time.
type firstMatch struct {
	began time.Time
	word  string
	after time.Duration
}

func (f *firstMatch) Write(p []byte) (int, error) {
	if f.after == 0 && strings.Contains(string(p), f.word) {
		f.after = time.Since(f.began)
	}
	return len(p), nil
}

// BenchmarkControllers is how long Kubernetes' controllers take for what people wait for.
func BenchmarkControllers(b *testing.B) {
	s := must(b, func() (*sandbox.Sandbox, error) {
		return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true})
	})
	defer func() { check(b, s.Stop()) }()
	client := must(b, func() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(s.Config()) })
	var namespaces, children series
	for i := range b.N {
		name := fmt.Sprint("bench-", i)
		create := metav1.CreateOptions{}
		must(b, func() (*corev1.Namespace, error) {
			return client.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, create)
		})
		maps := client.CoreV1().ConfigMaps(name)
		owner := must(b, func() (*corev1.ConfigMap, error) {
			return maps.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, create)
		})
		for j := range 20 {
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("child-", j), Labels: map[string]string{"child": "yes"}}}
			child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
			must(b, func() (*corev1.ConfigMap, error) { return maps.Create(b.Context(), child, create) })
		}
		children.time(func() {
			check(b, maps.Delete(b.Context(), "owner", metav1.DeleteOptions{}))
			poll(b, func(ctx context.Context) bool {
				list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "child=yes"})
				return err == nil && len(list.Items) == 0
			})
		})
		namespaces.time(func() {
			check(b, client.CoreV1().Namespaces().Delete(b.Context(), name, metav1.DeleteOptions{}))
			poll(b, func(ctx context.Context) bool {
				_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
				return err != nil
			})
		})
	}
	report(b, "collect-20-children", children)
	report(b, "delete-namespace", namespaces)
}

// BenchmarkWatchers is how long it takes until all of many watchers have heard of an object.
func BenchmarkWatchers(b *testing.B) {
	s := must(b, func() (*sandbox.Sandbox, error) {
		return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true})
	})
	defer func() { check(b, s.Stop()) }()
	client := must(b, func() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(s.Config()) })
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	for _, many := range []int{100, 1000, 5000} {
		b.Run(strconv.Itoa(many), func(b *testing.B) {
			heard := make(chan struct{}, many)
			for range many {
				w := must(b, func() (watch.Interface, error) {
					return maps.Watch(b.Context(), metav1.ListOptions{LabelSelector: fmt.Sprint("watchers=", many), ResourceVersion: "0"})
				})
				defer w.Stop()
				go func() {
					for e := range w.ResultChan() {
						if e.Type == watch.Added {
							heard <- struct{}{}
						}
					}
				}()
			}
			var all series
			for i := range b.N {
				all.time(func() {
					o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
						Name: fmt.Sprintf("watched-%d-%d", many, i), Labels: map[string]string{"watchers": strconv.Itoa(many)},
					}}
					must(b, func() (*corev1.ConfigMap, error) { return maps.Create(b.Context(), o, metav1.CreateOptions{}) })
					for range many {
						<-heard
					}
				})
				check(b, maps.Delete(b.Context(), fmt.Sprintf("watched-%d-%d", many, i), metav1.DeleteOptions{}))
			}
			report(b, "all-heard", all)
		})
	}
}

// BenchmarkMemory is the memory of each program of a control plane with one node, in MiB: resident, and proportional, in which
// pages of the one binary that the programs share are counted once. It is that of programs that have given back what starting left.
func BenchmarkMemory(b *testing.B) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		b.Skip("this system has no /proc/self/smaps_rollup")
	}
	b.Setenv("GOGC", "") // make sets it for programs that live for seconds
	s := must(b, func() (*sandbox.Sandbox, error) {
		return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true, Nodes: 1})
	})
	defer func() { check(b, s.Stop()) }()
	for range b.N { // once is enough
	}
	for _, program := range []string{"kube-apiserver", "kube-controller-manager"} {
		highest := 0.0
		poll(b, func(context.Context) bool { // see collector.RunSeldom
			rss, _ := memory(b, s.PIDs()[program])
			highest = max(highest, rss)
			return rss < highest-2
		})
	}
	total := 0.0
	for program, pid := range s.PIDs() {
		rss, pss := memory(b, pid)
		b.ReportMetric(rss, program+"-rss-MiB")
		b.ReportMetric(pss, program+"-pss-MiB")
		total += pss
	}
	b.ReportMetric(total, "all-pss-MiB")
}

func memory(b *testing.B, pid int) (rss, pss float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	check(b, err)
	for line := range strings.SplitSeq(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "Rss:":
			rss = kib / 1024
		case "Pss:":
			pss = kib / 1024
		}
	}
	return rss, pss
}

// BenchmarkBuild is the size of the binary and the time to build it: warm, after a change of the main package, and
// with OPERATOR_LAB_BENCH_COLD=1 also with an empty build cache, which takes minutes.
func BenchmarkBuild(b *testing.B) {
	binary := must(b, sandbox.FindBinary)
	info := must(b, func() (os.FileInfo, error) { return os.Stat(binary) })
	b.ReportMetric(float64(info.Size())/(1<<20), "binary-MiB")
	b.ReportMetric(compressed(b, binary)/(1<<20), "binary-gzip-MiB")
	build := func(env ...string) {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(b.TempDir(), "operator-lab"), "../cmd/operator-lab")
		cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	build()
	var warm series
	for range b.N {
		warm.time(func() { build() })
	}
	b.ReportMetric(warm.median().Seconds(), "build-warm-s")
	if os.Getenv("OPERATOR_LAB_BENCH_COLD") != "" {
		var cold series
		cold.time(func() { build("GOCACHE=" + b.TempDir()) })
		b.ReportMetric(cold.median().Seconds(), "build-cold-s")
	}
}

// compressed returns the size of a file as an archive of a release has it.
func compressed(b *testing.B, name string) float64 {
	b.Helper()
	file := must(b, func() (*os.File, error) { return os.Open(name) })
	defer func() { _ = file.Close() }()
	var size counter
	w := gzip.NewWriter(&size)
	must(b, func() (int64, error) { return io.Copy(w, file) })
	check(b, w.Close())
	return float64(size)
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func assets(b *testing.B) string {
	b.Helper()
	return must(b, func() (string, error) {
		binary, err := sandbox.FindBinary()
		if err != nil {
			return "", err
		}
		return sandbox.Assets(stateDir, binary)
	})
}

// warm prepares the data, which happens once for a build of the binary.
func warm(b *testing.B) {
	b.Helper()
	s := must(b, func() (*sandbox.Sandbox, error) {
		return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true})
	})
	check(b, s.Stop())
}

// firstWrite shows that the API server can be used.
func firstWrite(b *testing.B, config *rest.Config) {
	b.Helper()
	client := must(b, func() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(config) })
	must(b, func() (*corev1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps("default").Create(b.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "first-"}}, metav1.CreateOptions{})
	})
}

func poll(b *testing.B, done func(context.Context) bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), sandboxtest.Patience)
	defer cancel()
	for !done(ctx) {
		if ctx.Err() != nil {
			b.Fatal(ctx.Err())
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // a benchmark polls as finely as it measures
	}
}

func must[T any](b *testing.B, f func() (T, error)) T {
	b.Helper()
	v, err := f()
	check(b, err)
	return v
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
