package program

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// waiter only waits, and ends well when it is told to.
type waiter struct {
	files files
	// quiet: it is what the image does.
	quiet bool
}

// Start is of Program.
func (w waiter) Start(c *Container) (Running, error) {
	if !w.quiet {
		fmt.Fprintf(c.Stdout, "operator-lab: %s is simulated: this container only waits\n", c.Image)
	}
	return begin(func(t *task) int { return t.await() }), nil
}

// File is of Program.
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

// unknown is an image of which nobody knows what it does.
type unknown struct{}

// Start is of Program. What the pod wants to be run is run if it is built in.
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

// File is of Program.
func (unknown) File(string) (string, bool) { return "", false }
