package images

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// waiter only waits, and exits with code 0 when it is told to end.
type waiter struct {
	files files
	// quiet is set if the real image only waits, too.
	quiet bool
}

// Start implements [Program].
func (w waiter) Start(c *Container) (Running, error) {
	if !w.quiet {
		fmt.Fprintf(c.Stdout, "operator-lab: %s is simulated: this container only waits\n", c.Image)
	}
	return begin(func(t *task) int { return t.await() }), nil
}

// File implements [Program].
func (w waiter) File(path string) (string, bool) { return w.files.content(path) }

// await waits for a signal that ends it.
func (t *task) await() int {
	for {
		select {
		case s := <-t.signals:
			if terminates(s) {
				return 0
			}
		case <-t.life:
			return killed(syscall.SIGKILL)
		}
	}
}

// unknown is an image that is not in the catalogue.
type unknown struct{}

// Start implements [Program]. It runs the pod's command if it is built in.
func (unknown) Start(c *Container) (Running, error) {
	if r := shell(c, c.Command); r != nil {
		return r, nil
	}
	fmt.Fprintf(c.Stdout, "operator-lab: %s is simulated: no program is known for this image, so the container only waits; "+
		"an images file can name one\n", c.Image)
	if len(c.Command) > 0 {
		fmt.Fprintf(c.Stdout, "operator-lab: not run: %s\n", strings.Join(slices.Concat(c.Command, c.Args), " "))
	}
	return begin(func(t *task) int { return t.await() }), nil
}

// File implements [Program].
func (unknown) File(string) (string, bool) { return "", false }
