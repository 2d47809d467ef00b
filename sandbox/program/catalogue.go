package program

import (
	"bytes"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// Image is what is known of an image.
type Image struct {
	// Name is the full name: docker.io/library/nginx:latest for nginx.
	Name string
	// Program that its containers run. It is there even if the image cannot be pulled.
	Program Program
	// Pull is how getting it goes.
	Pull Pull
	// StartDelay is how long a container runs before its program begins. Nobody needs to wait for that: the Program does.
	StartDelay time.Duration
	// Simulated: nobody said what it does, so its containers only wait, or run what the pod says if that is built in.
	Simulated bool
	// User is whom the real image runs as, which the kubelet asks for where a pod has runAsNonRoot; 0: root. Nobody is
	// anybody here. An image that is not bundled is taken for one that does not need root.
	User int64
	// Entry is the pattern that matched; empty if none did.
	Entry string
}

// Pull is how getting an image goes.
type Pull struct {
	// Delay is how long it takes.
	Delay time.Duration
	// Error is why it fails, in the words of a container runtime; empty: it succeeds.
	Error string
}

// Catalogue says what images stand for: those that come with the lab, and those of a file of the person who uses it. Its
// methods may be called from any goroutine.
type Catalogue struct {
	guard   *guard.Guard
	bundled []entry

	mu      sync.Mutex
	file    string
	content []byte  // that own is made of; nil before there is any
	own     []entry // of the newest version of the file that was in order
	err     error   // that nobody has been told of
	broken  string  // what was last said about the file; empty when it is in order
}

// NewCatalogue returns the catalogue of the bundled images, whose operators the binary runs, and of an images file,
// unless that is empty. The error says what is wrong with the file, and where (see [Problems]). There is a catalogue
// nevertheless, for those who want to go on: with what is bundled, and what the file says once it is in order.
func NewCatalogue(binary, file string) (*Catalogue, error) {
	// What a container leaves behind goes with it, also what has made a session of its own.
	c := &Catalogue{file: file, guard: guard.New(guard.Options{Mark: "OPERATOR_LAB_CONTAINER"})}
	c.bundled = bundled(binary, c.guard)
	return c, c.Err()
}

// Lookup says what an image is, by any name that a pod may give it. An image that nobody knows is one that waits; the
// error is that of a name which is none.
//
// A file that has changed is read first. What is wrong with it is kept for Err, and what was in it before still holds.
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

// Err is what is wrong with the newest version of the file. It is told once; after that, and when all is well, Err is nil.
func (c *Catalogue) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	err := c.err
	c.err = nil
	return err
}

// Close kills what is left of all processes that programs of this catalogue have started.
func (c *Catalogue) Close() { c.guard.Close() }

// refresh reads the file if it has changed. It is small, so it is compared as a whole: times and sizes can be equal.
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

// complain keeps an error until it is told, but only once.
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
