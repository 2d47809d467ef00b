package process

import (
	"encoding/json"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/link"
)

// TestPodVariable checks that the packages images and link, which must not import each other, mean the same.
func TestPodVariable(t *testing.T) {
	if images.PodVariable != link.PodVariable {
		t.Errorf("%s is not %s", images.PodVariable, link.PodVariable)
	}
}

// TestKillInPod checks that a program in a pod has ended when Kill returns.
func TestKillInPod(t *testing.T) {
	labEnd, node := net.Pipe()
	defer func() { _ = node.Close() }()
	c := newPod(labEnd)
	killed := make(chan struct{})
	go func() {
		c.Kill()
		close(killed)
	}()
	var order images.Order
	if err := json.NewDecoder(node).Decode(&order); err != nil || order.Signal != syscall.SIGKILL {
		t.Fatalf("the node is told %+v: %v", order, err)
	}
	select {
	case <-killed:
		t.Error("Kill returned before the program had ended")
	default:
	}
	close(c.ended)
	<-killed
}

// TestPrintedInPod checks that what a program in a pod has printed is taken before somebody goes on who has asked for it, and that
// nobody waits for a program that has ended.
func TestPrintedInPod(t *testing.T) {
	labEnd, node := net.Pipe()
	c := newPod(labEnd)
	var printed strings.Builder
	c.hears(func(p []byte) { printed.Write(p) })
	var following sync.WaitGroup
	following.Go(func() { c.follow(json.NewDecoder(labEnd)) })
	report := func(r images.Report) {
		if err := json.NewEncoder(node).Encode(r); err != nil {
			t.Error(err)
		}
	}
	following.Go(func() {
		var order images.Order
		if err := json.NewDecoder(node).Decode(&order); err != nil || order.Drain == 0 {
			t.Errorf("the node is told %+v: %v", order, err)
		}
		report(images.Report{Printed: []byte("hello")})
		report(images.Report{Drained: order.Drain})
	})
	c.drain()
	if printed.String() != "hello" {
		t.Errorf("%q was printed", printed.String())
	}
	c.hears(nil)
	report(images.Report{Printed: []byte("to nobody")})
	report(images.Report{Ended: true, Code: 3})
	following.Wait()
	c.drain()
	if printed.String() != "hello" || c.code != 3 {
		t.Errorf("%q was printed, exit code %d", printed.String(), c.code)
	}
	_ = node.Close()
}

// TestOperatorsWithoutPods: programs of a sandbox are operators only of a lab that asks for them.
func TestOperatorsWithoutPods(t *testing.T) {
	for _, test := range []struct {
		asked []string
		want  bool
	}{{nil, false}, {[]string{"olm-operator"}, true}} {
		l, err := lab.Open(t.Context(), lab.Options{Private: true, InPods: test.asked})
		if err != nil {
			t.Fatal(err)
		}
		p := &Pods{lab: l, dir: t.TempDir(), operators: map[string]*podOperator{}}
		for _, life := range []images.Life{{Operator: "olm-operator"}, {Operator: "mine", Pod: "mine-0"}} {
			op, err := p.operator(life)
			if want := test.want || life.Pod != ""; (err == nil) != want {
				t.Errorf("%v asked for, %s: %v", test.asked, life.Operator, err)
			} else if want && (op.options.Skip != nil) != (life.Pod == "") {
				t.Errorf("%s: what is recorded of it is not what it should be", life.Operator)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
