package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node"
)

func TestKill(t *testing.T) {
	m := newMachine(t)
	m.images["other"] = images.Image{Program: image(waits)}
	id, _ := m.start(t, "waits")
	other, _ := m.start(t, "other")
	if got := m.Kill(node.Match{Namespace: "elsewhere"}, node.ReasonError); got != nil {
		t.Errorf("killed %v", got)
	}
	got := m.Kill(node.Match{Namespace: "shop", Pod: "pod-w*", Labels: map[string]string{"app": "pod-waits"}, Container: "main"}, node.ReasonOOMKilled)
	if !slices.Equal(got, []string{"shop/pod-waits/main"}) {
		t.Errorf("killed %v", got)
	}
	if s := m.awaitExit(t, id); s.ExitCode != 137 || s.Reason != node.ReasonOOMKilled {
		t.Errorf("status %v", s)
	}
	if s := m.status(t, other); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("the other is %v", s.State)
	}
	if got := m.Kill(node.Match{Image: "waits"}, node.ReasonError); got != nil {
		t.Errorf("what had ended was killed: %v", got)
	}
	if got := m.Kill(node.Match{Image: "other"}, node.ReasonError); len(got) != 1 {
		t.Errorf("killed %v", got)
	}
}

func TestCrashes(t *testing.T) {
	m := newMachine(t)
	for _, after := range []time.Duration{0, 10 * time.Millisecond} {
		m.SetTroubles([]node.Trouble{{Match: node.Match{Pod: "pod-waits"}, Crash: true, CrashAfter: after, CrashCode: 3}})
		id, _ := m.start(t, "waits")
		if s := m.awaitExit(t, id); s.ExitCode != 3 || s.Reason != node.ReasonError || s.StartedAt == 0 {
			t.Errorf("after %v: %v", after, s)
		}
	}
	m.SetTroubles(nil)
	id, _ := m.start(t, "waits")
	if s := m.status(t, id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("without trouble it is %v", s.State)
	}
}

func TestALateStart(t *testing.T) {
	m := newMachine(t)
	begun := make(chan struct{}, 1)
	m.images["tells"] = images.Image{Program: image(func(t *task) int {
		begun <- struct{}{}
		return t.untilSignal()
	})}
	m.SetTroubles([]node.Trouble{{StartDelay: time.Hour}})
	id, _ := m.start(t, "tells")
	if s := m.status(t, id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("it is %v", s.State)
	}
	if err := m.StopContainer(t.Context(), id, 3600); err != nil {
		t.Fatal(err)
	}
	if s := m.status(t, id); s.ExitCode != 143 || len(begun) != 0 {
		t.Errorf("status %v, begun %d", s, len(begun))
	}
	m.SetTroubles([]node.Trouble{{StartDelay: time.Millisecond}})
	m.start(t, "tells")
	<-begun
}

func TestTroubleWithPulling(t *testing.T) {
	m := newMachine(t)
	pull := func(pod string) error {
		_, config := m.pod(t, pod)
		_, err := m.Images().PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "waits"}, nil, config)
		return err
	}
	m.SetTroubles([]node.Trouble{{Match: node.Match{Pod: "bad-*", Image: "waits", Container: "any"}, PullError: "not found"}})
	if err := pull("good"); err != nil {
		t.Error(err)
	}
	if err := pull("bad-1"); err == nil || !strings.HasSuffix(err.Error(), "docker.io/library/waits:latest: not found") {
		t.Errorf("pulling says %v", err)
	}
}

func TestUnready(t *testing.T) {
	m := newMachine(t)
	m.images["page"] = images.Image{Program: page("hello\n")}
	id, pod := m.start(t, "page")
	at := m.ip(t, pod)
	probes := [][]string{
		{"http", "", "8080", "/"}, {"tcp", "", "8080"}, {"exec", "true"},
	}
	says := []string{"HTTP probe failed with statuscode: 503", "dial tcp " + at + ":8080: connect: connection refused", ""}
	probe := func(kind string, args []string) (string, error) {
		out, _, err := m.ExecSync(t.Context(), id, append([]string{node.ProbeCommand, kind}, args...), time.Minute)
		return string(out), err
	}
	eventually(t, "it listens", func() error {
		_, err := probe("readiness", probes[1])
		return err
	})
	m.SetTroubles([]node.Trouble{{Match: node.Match{Labels: map[string]string{"app": "pod-page"}}, Unready: true}})
	for i, args := range probes {
		if out, err := probe("readiness", args); err == nil || out != says[i] {
			t.Errorf("%v: %q, %v; want %q", args, out, err, says[i])
		}
		if out, err := probe("liveness", args); err != nil {
			t.Errorf("liveness %v: %q, %v", args, out, err)
		}
	}
	m.SetTroubles(nil)
	for _, args := range probes {
		if out, err := probe("readiness", args); err != nil {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	m := newMachine(t)
	t.Run("side by side", func(t *testing.T) {
		for i := range 20 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				pod, config := m.pod(t, fmt.Sprintf("many-%d", i))
				id := m.createIn(t, pod, config, "waits")
				if err := m.StartContainer(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if i%2 == 0 {
					m.Kill(node.Match{Pod: config.Metadata.Name}, node.ReasonError)
				}
				if _, err := m.ListContainers(t.Context(), nil); err != nil {
					t.Error(err)
				}
				if err := m.RemovePodSandbox(t.Context(), pod); err != nil {
					t.Error(err)
				}
			})
		}
	})
	if list, err := m.ListPodSandbox(t.Context(), nil); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}
