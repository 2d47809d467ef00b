package labapi_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/labapi"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestReplacesADeadLab starts a lab where a killed one is still registered.
func TestReplacesADeadLab(t *testing.T) {
	dead, err := labapi.Start(t.Context(), cluster.Config(), labapi.Options{Backend: newLab()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := aggregator.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	nobody := []byte(`{"spec":{"service":{"port":1}}}`)
	if _, err := c.APIServices().Patch(t.Context(), "v1alpha1.operator-lab.dev", types.MergePatchType, nobody, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "its death to be noticed", func(ctx context.Context) error {
		_, err := client(t, cluster.Config(), "operators").List(ctx, metav1.ListOptions{})
		if err == nil {
			return errors.New("it answers")
		}
		return nil
	})
	l := newLab()
	l.loops = []v1alpha1.Loop{loop("default", "newer", "zundoko")}
	serve(t, l)
	if err := dead.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := kubectl(t, "get", "loops", "-o", "name"); got != "loop.operator-lab.dev/hikawa.newer\n" {
		t.Error(got)
	}
}

// TestReplacesALivingLab starts a lab while another one is served.
func TestReplacesALivingLab(t *testing.T) {
	serve(t, newLab())
	for i := range 5 {
		l := newLab()
		l.loops = []v1alpha1.Loop{loop("default", fmt.Sprint("newest-", i), "zundoko")}
		serve(t, l)
		list, err := client(t, cluster.Config(), "loops").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != fmt.Sprint("hikawa.newest-", i) {
			t.Errorf("%v, %v", list, err)
		}
	}
}

// another starts another sandbox for the test.
func another(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.Start(t.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTwoLabs(t *testing.T) {
	second := another(t)
	for name, in := range map[string]*sandbox.Sandbox{"first": cluster, "second": second} {
		l := newLab()
		l.loops = []v1alpha1.Loop{loop("default", name, "zundoko")}
		serveIn(t, in, l)
	}
	for name, in := range map[string]*sandbox.Sandbox{"first": cluster, "second": second} {
		list, err := client(t, in.Config(), "loops").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 || list.Items[0].GetName() != "hikawa."+name {
			t.Errorf("%s has %v", name, list.Items)
		}
	}
}

func TestStopEndsWatches(t *testing.T) {
	s := serve(t, newLab())
	w, err := client(t, cluster.Config(), "operators").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, w, "ADDED zundoko")
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		if e.Type != watch.Error { // the connection may close before the end of the stream arrives
			t.Errorf("there is an event after the end: %v", e)
		}
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	for range 3 {
		l := newLab()
		s, err := labapi.Start(t.Context(), cluster.Config(), labapi.Options{Backend: l})
		if err != nil {
			t.Fatal(err)
		}
		kubectl(t, "get", "lab", "-A")
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sandboxtest.Eventually(t, "the goroutines to end", func(context.Context) error {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "sandbox/labapi.") || strings.Contains(stack, "k8s.io/apiserver/") {
				return fmt.Errorf("one is left:\n%s", stack)
			}
		}
		return nil
	})
	for _, args := range []string{"apiservice v1alpha1.operator-lab.dev", "service -n operator-lab-system lab-api", "clusterrole operator-lab-view"} {
		if said := refused(t, "", append([]string{"get"}, strings.Fields(args)...)...); !strings.Contains(said, "NotFound") {
			t.Error(said)
		}
	}
}

func TestStartFails(t *testing.T) {
	config := cluster.Config()
	config.Host = "https://127.0.0.1:1"
	if _, err := labapi.Start(t.Context(), config, labapi.Options{Backend: newLab()}); err == nil {
		t.Error("it starts without a cluster")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := labapi.Start(ctx, cluster.Config(), labapi.Options{Backend: newLab()}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
