package node_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

// stepper returns a program that runs one step each time that next is called.
func stepper(steps ...func(t *task)) (p image, next func()) {
	go1, done := make(chan struct{}), make(chan struct{})
	return func(t *task) int {
			for _, step := range steps {
				<-go1
				step(t)
				done <- struct{}{}
			}
			return t.untilSignal()
		}, func() {
			go1 <- struct{}{}
			<-done
		}
}

func TestLinesOfALog(t *testing.T) {
	m := newMachine(t)
	long := strings.Repeat("x", 40<<10)
	p, next := stepper(func(t *task) {
		_, _ = fmt.Fprint(t.Stdout, "one\ntw")
		_, _ = fmt.Fprint(t.Stderr, "err\n")
		_, _ = fmt.Fprint(t.Stdout, "o\n\n")
		_, _ = fmt.Fprintln(t.Stdout, long)
	})
	m.images["writes"] = images.Image{Program: p}
	id, _ := m.start(t, "writes")
	next()
	want := []string{
		"stdout F one", "stderr F err", "stdout F two", "stdout F ",
		"stdout P " + long[:16<<10], "stdout P " + long[:16<<10], "stdout F " + long[:8<<10],
	}
	if got := m.log(t, id); !slices.Equal(got, want) {
		t.Errorf("got %.100q", got)
	}
}

func TestRotation(t *testing.T) {
	m := newMachine(t)
	say := func(text string) func(*task) {
		return func(t *task) { _, _ = fmt.Fprintln(t.Stdout, text) }
	}
	p, next := stepper(say("before"), say("between"), say("after"))
	m.images["writes"] = images.Image{Program: p}
	id, _ := m.start(t, "writes")
	path := m.status(t, id).LogPath
	next()
	if err := os.Rename(path, path+".1"); err != nil { // as the kubelet does
		t.Fatal(err)
	}
	next()
	if err := m.ReopenContainerLog(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	next()
	if got := m.log(t, id); !slices.Equal(got, []string{"stdout F after"}) {
		t.Errorf("the new log is %q", got)
	}
	if old, err := os.ReadFile(path + ".1"); err != nil || bytes.Count(old, []byte("\n")) != 2 {
		t.Errorf("the old log is %q, %v", old, err)
	}
	if err := m.StopContainer(t.Context(), id, 30); err != nil {
		t.Fatal(err)
	}
	if err := m.ReopenContainerLog(t.Context(), id); err == nil {
		t.Error("the log of an ended container was reopened")
	}
}

func TestAFlood(t *testing.T) {
	const limit = 64 << 10
	m := newMachine(t, func(o *node.Options) { o.LogLimit = limit })
	line := strings.Repeat("x", 1023) + "\n"
	flood := func(t *task) {
		for range 1000 {
			_, _ = t.Stdout.Write([]byte(line))
		}
	}
	p, next := stepper(flood, func(t *task) { _, _ = fmt.Fprintln(t.Stdout, "calm") })
	m.images["floods"] = images.Image{Program: p}
	id, _ := m.start(t, "floods")
	next()
	path := m.status(t, id).LogPath
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2*limit {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
	got := m.log(t, id)
	if last := got[len(got)-1]; !strings.HasPrefix(last, "stderr F operator-lab: the log is full (65536 bytes)") {
		t.Errorf("the log ends with %q", last)
	}
	written := len(got) - 1
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := m.ReopenContainerLog(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	next()
	want := fmt.Sprintf("stderr F operator-lab: %d lines were left out here: more than 65536 bytes since the log was last rotated", 1000-written)
	if got := m.log(t, id); !slices.Equal(got, []string{want, "stdout F calm"}) {
		t.Errorf("the new log is %q, want %q", got, want)
	}
}

func TestATerminalHasOneStream(t *testing.T) {
	m := newMachine(t)
	p, next := stepper(func(t *task) { _, _ = fmt.Fprintln(t.Stderr, "error") })
	m.images["writes"] = images.Image{Program: p}
	id, _ := m.start(t, "writes", func(c *runtimeapi.ContainerConfig) { c.Tty = true })
	next()
	if got := m.log(t, id); !slices.Equal(got, []string{"stdout F error"}) {
		t.Errorf("log %q", got)
	}
}
