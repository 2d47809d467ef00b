package pipe_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/pipe"
)

// TestPipe checks that all that was printed is taken: at once when it is asked for, and in the end.
func TestPipe(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	p, err := pipe.New(func(b []byte) { got.Write(b) })
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if _, err := p.Into.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	p.Drain()
	if got.String() != "one" {
		t.Errorf("drained %q", got.String())
	}
	var following sync.WaitGroup
	following.Go(p.Follow)
	write("two")
	if err := p.Into.Close(); err != nil {
		t.Fatal(err)
	}
	following.Wait()
	if got.String() != "onetwo" {
		t.Errorf("at its end %q", got.String())
	}
	p.Drain()
	p.Close()
	p.Drain()
}

// TestStop checks that nobody follows a pipe that was stopped, although somebody may still write.
func TestStop(t *testing.T) {
	t.Parallel()
	p, err := pipe.New(func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var following sync.WaitGroup
	following.Go(p.Follow)
	p.Stop()
	following.Wait()
}
