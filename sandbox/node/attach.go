package node

import (
	"context"
	"io"
	"syscall"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/operator-lab/operator-lab/sandbox/node/shell"
)

// both joins the two directions of a terminal.
type both struct {
	io.Reader
	io.Writer
}

// terminal joins the two directions, either of which may be nil.
func terminal(in io.Reader, out io.WriteCloser) io.ReadWriter {
	if in == nil {
		in = blank{}
	}
	return both{in, orNothing(out)}
}

// blank is an empty reader.
type blank struct{}

func (blank) Read([]byte) (int, error) { return 0, io.EOF }

// sizes converts the sizes of a terminal until resize is closed or ctx ends.
func sizes(ctx context.Context, resize <-chan remotecommand.TerminalSize) <-chan shell.Size {
	to := make(chan shell.Size)
	go func() {
		defer close(to)
		for {
			select {
			case size, ok := <-resize:
				if !ok {
					return
				}
				select {
				case to <- shell.Size{Width: int(size.Width), Height: int(size.Height)}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// Attach connects to the streams of the container's program: its output from now on, and its input if the pod asks for
// that. It ends with the container.
func (s streamRuntime) Attach(
	ctx context.Context, id string, in io.Reader, out, errs io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize,
) error {
	ctx, done := s.begin(ctx)
	defer done()
	c, err := s.runtime.container(id)
	if err != nil {
		return err
	}
	client := c.attached.join()
	defer c.attached.leave(client)
	stdout, stderr := orNothing(out), orNothing(errs)
	switch {
	case tty && c.config.GetTty():
		t := shell.NewTerminal(terminal(in, out))
		stdout, stderr = t, t
		go t.Resize(sizes(ctx, resize))
		if in != nil && c.stdin != nil {
			go c.typeLines(t)
		}
	case in != nil && c.stdin != nil:
		go c.feed(in)
	}
	return client.watch(ctx, stdout, stderr)
}

// feed copies the input to the program. At its end, the program's input ends too if the pod asks for that (stdinOnce).
func (c *container) feed(in io.Reader) {
	_, err := io.Copy(c.stdin, in)
	if err == nil && c.config.GetStdinOnce() {
		c.stdin.end()
	}
}

// typeLines copies the lines that are typed on a terminal to the program.
func (c *container) typeLines(t *shell.Terminal) {
	for {
		line, err := t.ReadLine("")
		if err != nil {
			if c.config.GetStdinOnce() {
				c.stdin.end()
			}
			return
		}
		if line == shell.Interrupt {
			c.pressInterrupt()
			continue
		}
		if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
			return
		}
	}
}

// pressInterrupt ends what runs in the foreground, as a terminal does.
func (c *container) pressInterrupt() {
	c.mu.Lock()
	interrupt := c.interrupt
	c.mu.Unlock()
	if interrupt != nil {
		interrupt()
		return
	}
	c.signal(syscall.SIGINT)
}

// foreground sets the function that Ctrl-C calls; nil: none.
func (c *container) foreground(interrupt context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupt = interrupt
}

// watch writes the output to the two writers until the container or the context ends.
func (s *client) watch(ctx context.Context, stdout, stderr io.Writer) error {
	for {
		pieces, end := s.take()
		for _, p := range pieces {
			to := stdout
			if p.stream == "stderr" {
				to = stderr
			}
			if _, err := to.Write(p.text); err != nil {
				return nil //nolint:nilerr // who is not there any more needs no answer
			}
		}
		if end && len(pieces) == 0 {
			return nil
		}
		if end {
			continue
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil
		}
	}
}
