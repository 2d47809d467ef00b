package program

import (
	"fmt"
	"time"
)

// entry is what a catalogue knows of the images of a pattern.
type entry struct {
	pattern    pattern
	program    Program
	pull       Pull
	startDelay time.Duration
	simulated  bool
	user       int64
}

// nonRoot is the user of images that have none of their own: what it is called in distroless ones.
const nonRoot = 65532

// notFound is a tag that no registry has.
const notFound = "notfound"

// find is the entry for a name: the most specific one of the person's own, and else of the bundled ones. Among equals the
// first is meant.
func find(n name, own, bundled []entry) entry {
	e, found := best(n, own)
	// It stays so for images that the person maps, unless it is that tag which is mapped.
	if n.tag == notFound && (!found || e.pattern.tag != notFound) {
		return entry{
			pattern: e.pattern, program: unknown{},
			pull: Pull{Delay: e.pull.Delay, Error: noSuchImage(n)},
		}
	}
	if found {
		return e
	}
	if e, found = best(n, bundled); found {
		return e
	}
	return entry{program: unknown{}, simulated: true, user: nonRoot}
}

// noSuchImage is what containerd says.
func noSuchImage(n name) string {
	return fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", n, n, n)
}

func best(n name, entries []entry) (e entry, found bool) {
	for i := range entries {
		if p := entries[i].pattern; p.matches(n) && (!found || p.compare(e.pattern) > 0) {
			e, found = entries[i], true
		}
	}
	return e, found
}

// image is what is known of the image of a name.
func (e entry) image(n name) Image {
	i := Image{
		Name: n.String(), Program: e.program, Pull: e.pull,
		StartDelay: e.startDelay, Simulated: e.simulated, User: e.user, Entry: e.pattern.text,
	}
	if i.StartDelay > 0 {
		i.Program = delayed{i.Program, i.StartDelay}
	}
	return i
}
