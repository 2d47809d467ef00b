package process

import (
	"encoding/json"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
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
	lab, node := net.Pipe()
	defer func() { _ = node.Close() }()
	c := newPod(lab)
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
	lab, node := net.Pipe()
	c := newPod(lab)
	var printed strings.Builder
	c.hears(func(p []byte) { printed.Write(p) })
	var following sync.WaitGroup
	following.Go(func() { c.follow(json.NewDecoder(lab)) })
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
