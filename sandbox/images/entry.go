package images

import (
	"context"
	"fmt"
	"time"
)

// entry describes the images that match a pattern.
type entry struct {
	pattern    pattern
	program    Program
	pull       Pull
	make       func(context.Context) error
	startDelay time.Duration
	simulated  bool
	user       int64
	operator   string // the name of the operator that it is; empty: it is none
}

// nonRoot is the user ID for images without root, as in distroless ones.
const nonRoot = 65532

// notFound is a tag that no registry has.
const notFound = "notfound"

// find returns the most specific entry for a name among the user's own, and otherwise among the bundled ones. The first
// of equals counts.
func find(n name, own, bundled []entry) entry {
	e, found := best(n, own)
	// The tag stays special for images that the user maps, unless the mapping names it.
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

// noSuchImage returns containerd's error.
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

// image returns the description of the image of a name.
func (e entry) image(n name) Image {
	i := Image{
		Name: n.String(), Program: e.program, Pull: e.pull, Make: e.make,
		StartDelay: e.startDelay, Simulated: e.simulated, User: e.user, Entry: e.pattern.text,
	}
	if i.StartDelay > 0 {
		i.Program = delayed{i.Program, i.StartDelay}
	}
	return i
}
