package durability_test

import (
	"context"
	"fmt"
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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// BenchmarkCluster measures what the operator takes: from an EtcdCluster to three members that vote, to replace one whose
// pod and data are gone, and to grow to five and shrink again. Beside it, in turns, is what has no operator and no
// Kubernetes: three etcd processes of the same binary, told of each other from the start.
func BenchmarkCluster(b *testing.B) {
	w := newFixture(b)
	var plain, three, replace, resize series
	var memory float64
	for n := range b.N {
		plain.time(func() { startPlain(b) })
		w.cluster.Name = "bench-" + strconv.Itoa(n)
		three.time(func() { w.create(nil) })
		memory = w.memberMemory()
		replace.time(w.replaceOne)
		w.remove()
		w.cluster.Name = "sizes-" + strconv.Itoa(n)
		w.createSize(1, nil)
		resize.time(func() {
			for _, to := range []int{3, 5, 3} {
				w.resize(to)
			}
		})
		w.remove()
	}
	b.ReportMetric(plain.seconds(), "plain-etcd-3-s")
	b.ReportMetric(three.seconds(), "cr-to-3-s")
	b.ReportMetric(three.seconds()/plain.seconds(), "cr-to-3/plain")
	b.ReportMetric(replace.seconds(), "replace-s")
	b.ReportMetric(resize.seconds(), "1-3-5-3-s")
	b.ReportMetric(memory, "member-MiB")
	b.ReportMetric(0, "ns/op") // all of it together means nothing
}

// series are durations; what counts is their median.
type series []time.Duration

func (s *series) time(f func()) {
	began := time.Now()
	f()
	*s = append(*s, time.Since(began))
}

func (s series) seconds() float64 { return slices.Sorted(slices.Values(s))[len(s)/2].Seconds() }

// replaceOne deletes a member's pod, and with it the data, and returns when there are as many members as before, of which
// that one is none.
func (w *fixture) replaceOne() {
	pods, err := w.pods(w.Context())
	w.must(err)
	gone := pods[0].Name
	w.must(w.Delete(w.Context(), &pods[0]))
	w.eventually("another member", func() error {
		voters, err := votersOf(w.Context(), w.url(), w.box.DialContext)
		if err == nil && (len(voters) != size || slices.Contains(voters, gone)) {
			err = fmt.Errorf("%w: %v", errNotWhole, voters)
		}
		return err
	})
}

// resize asks for another number of members and waits for them.
func (w *fixture) resize(to int) {
	change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"size":%d}}`, to))
	w.must(w.Patch(w.Context(), &v1beta2.EtcdCluster{ObjectMeta: w.meta()}, change))
	w.eventually("members", func() error { return w.wholeOf(to) })
}

// remove deletes the cluster and waits until its pods are gone, which would take the processor of the next one.
func (w *fixture) remove() {
	w.must(w.Delete(w.Context(), &v1beta2.EtcdCluster{ObjectMeta: w.meta()}))
	w.eventually("the end of the members", func() error {
		pods, err := w.pods(w.Context())
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%w: %d pods are left", errNotWhole, len(pods))
		}
		return err
	})
}

func (w *fixture) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.cluster.Namespace, Name: w.cluster.Name}
}

// pssLine matches the proportional set size of a process in kB.
var pssLine = regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB`)

// memberMemory returns the average memory of a member, in MiB; 0 where /proc does not tell.
func (w *fixture) memberMemory() float64 {
	var total float64
	count := 0
	pods, err := w.pods(w.Context())
	w.must(err)
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		line, err := os.ReadFile(file)
		command := strings.Split(string(line), "\x00")
		if err != nil || filepath.Base(command[0]) != "etcd" {
			continue // it has ended, or is another one
		}
		ours := func(argument string) bool {
			for i := range pods {
				if strings.Contains(argument, pods[i].Name) {
					return true
				}
			}
			return false
		}
		if !slices.ContainsFunc(command, ours) {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join(filepath.Dir(file), "smaps_rollup"))
		found := pssLine.FindSubmatch(rollup)
		if err != nil || found == nil {
			continue
		}
		kilobytes, err := strconv.ParseFloat(string(found[1]), 64)
		w.must(err)
		total += kilobytes / 1024
		count++
	}
	if count == 0 {
		return 0
	}
	return total / float64(count)
}

// startPlain starts three etcd processes and returns when a write through each was acknowledged. They end with the call.
func startPlain(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var clients, peers, cluster []string
	for i := range size {
		clients, peers = append(clients, "http://"+freeAddress(b)), append(peers, "http://"+freeAddress(b))
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	ended := make(chan struct{}, size)
	defer func() {
		cancel()
		for range size {
			<-ended
		}
	}()
	for i := range size {
		//nolint:gosec // it is the binary under test
		cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "etcd"),
			"--name", fmt.Sprintf("m%d", i), "--data-dir", b.TempDir(), "--heartbeat-interval=50", "--election-timeout=500",
			"--listen-client-urls", clients[i], "--advertise-client-urls", clients[i], "--listen-peer-urls", peers[i],
			"--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(cluster, ","))
		if err := cmd.Start(); err != nil {
			ended <- struct{}{}
			b.Error(err)
			continue
		}
		go func() {
			_ = cmd.Wait() // it is killed
			ended <- struct{}{}
		}()
	}
	var direct net.Dialer
	for _, url := range clients {
		for ctx.Err() == nil {
			if voters, err := votersOf(ctx, url, direct.DialContext); err == nil && len(voters) == size {
				break
			}
		}
	}
}

// freeAddress returns an address on which probably nothing listens.
func freeAddress(b *testing.B) string {
	b.Helper()
	var listen net.ListenConfig
	l, err := listen.Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
