package process

import (
	"encoding/json"
	"net"
	"syscall"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// TestKillInPod checks that a program in a pod has ended when Kill returns.
func TestKillInPod(t *testing.T) {
	lab, node := net.Pipe()
	defer func() { _ = node.Close() }()
	c := &pod{ended: make(chan struct{}), conn: lab}
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
