package images

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// Image is the catalogue's description of an image.
type Image struct {
	// Name is the full name: docker.io/library/nginx:latest for nginx.
	Name string
	// Program is run by the image's containers. It is set even if the image cannot be pulled.
	Program Program
	// Pull describes how long pulling takes, and whether it fails.
	Pull Pull
	// Make makes what the image runs when it is pulled. Its error is why that fails. nil: there is nothing to make.
	Make func(ctx context.Context) error
	// StartDelay is the time between the start of a container and that of its program. The Program itself waits for it.
	StartDelay time.Duration
	// Simulated is set for images that are not in the catalogue. Their containers only wait, or run the pod's command
	// if it is built in.
	Simulated bool
	// User is the user ID of the real image, which the kubelet checks for pods with runAsNonRoot; 0: root. It has no
	// other effect. An image that is not bundled is assumed not to need root.
	User int64
	// Entry is the pattern that matched; empty if none did.
	Entry string
}

// Pull describes how an image is pulled.
type Pull struct {
	// Delay is the duration.
	Delay time.Duration
	// Error is why it fails, in the words of a container runtime; empty: it succeeds.
	Error string
}

// Catalogue maps images to programs: the bundled images, and those of the user's images file. Its methods may be called
// from any goroutine.
type Catalogue struct {
	guard   *guard.Guard
	builder *builder
	bundled []entry

	mu      sync.Mutex
	file    string
	content []byte  // the content that own was read from; nil at first
	own     []entry // of the newest version of the file that was in order
	err     error   // not yet returned by Err
	broken  string  // the last error of the file; empty if it is in order
}

// NewCatalogue returns the catalogue of the bundled images, whose operators the binary runs, and of an images file, if
// one is given. The error describes what is wrong with the file, and where (see [Problems]). The catalogue is usable
// even then: it has the bundled images, and reads the file again once it has changed.
func NewCatalogue(binary, file string) (*Catalogue, error) {
	// The processes that a container leaves behind end with it, also those that have made a session of their own.
	c := &Catalogue{file: file, guard: guard.New(guard.Options{Mark: "OPERATOR_LAB_CONTAINER"})}
	c.builder = newBuilder(binary)
	c.bundled = bundled(binary, c.guard)
	return c, c.Err()
}

// Lookup returns the image of any name that a pod may use. An unknown image only waits. It fails for an invalid name.
//
// It first reads the images file if that has changed. An error in the file is kept for Err, and its previous content
// still applies.
func (c *Catalogue) Lookup(image string) (Image, error) {
	name, err := parseName(image)
	if err != nil {
		return Image{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	e := find(name, c.own, c.bundled)
	return e.image(name), nil
}

// Operators returns the names of the operators in the images file.
func (c *Catalogue) Operators() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	for _, e := range c.own {
		if e.operator != "" {
			names = append(names, e.operator)
		}
	}
	return names
}

// Err returns the error of the newest version of the file. It returns each error once, and nil if there is no new one.
func (c *Catalogue) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	err := c.err
	c.err = nil
	return err
}

// Close kills the remaining processes of all programs that this catalogue has started.
func (c *Catalogue) Close() {
	c.guard.Close()
	c.builder.guard.Close()
}

// refresh reads the file if it has changed. It compares the whole content, which is small: times and sizes may be
// equal.
func (c *Catalogue) refresh() {
	if c.file == "" {
		return
	}
	content, err := readFile(c.file)
	if err == nil {
		if c.content != nil && bytes.Equal(content, c.content) {
			c.complain(nil)
			return
		}
		var own []entry
		if own, err = c.parse(content); err == nil {
			c.own, c.content = own, content
		}
	}
	c.complain(err)
}

// complain keeps a new error until Err returns it.
func (c *Catalogue) complain(err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != c.broken {
		c.err = err
	}
	c.broken = said
}
