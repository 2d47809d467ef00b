package sandboxtest

import (
	"maps"
	"strings"
	"testing"
)

func TestGoroutines(t *testing.T) {
	before := goroutines()
	end := make(chan struct{})
	started := make(chan struct{})
	go func() { close(started); <-end }()
	<-started
	left := goroutines()
	maps.DeleteFunc(left, func(id, _ string) bool { return before[id] != "" })
	if len(left) != 1 {
		t.Errorf("one goroutine was started, and found were %v", left)
	}
	for _, stack := range left {
		if !strings.Contains(stack, "TestGoroutines") {
			t.Errorf("it is another one: %s", stack)
		}
	}
	close(end)
}
