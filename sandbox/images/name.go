package images

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// name is an image's, in its parts: docker.io/library/nginx, latest, and no digest for nginx.
type name struct {
	repository, tag, digest string
}

// parseName completes a name as Kubernetes and its container runtimes do.
func parseName(image string) (name, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return name{}, fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	named = reference.TagNameOnly(named)
	n := name{repository: named.Name()}
	if tagged, is := named.(reference.Tagged); is {
		n.tag = tagged.Tag()
	}
	if digested, is := named.(reference.Digested); is {
		n.digest = digested.Digest().String()
	}
	return n, nil
}

// CheckName reports what is wrong with the name of an image.
func CheckName(image string) error {
	_, err := parseName(image)
	return err
}

// String returns the full name.
func (n name) String() string {
	s := n.repository
	if n.tag != "" {
		s += ":" + n.tag
	}
	if n.digest != "" {
		s += "@" + n.digest
	}
	return s
}

// pattern matches names of images.
type pattern struct {
	text string // as it was written
	name        // with wildcards
}

// longestPattern is more than a registry, a repository, a tag and a digest have together.
const longestPattern = 1024

// parsePattern parses a pattern. It is completed like a name, except for the tag: without one it matches all tags.
func parsePattern(text string) (pattern, error) {
	p := pattern{text: text}
	if len(text) > longestPattern {
		return p, fmt.Errorf("%q is longer than any name of an image", shorten(text))
	}
	rest, digest, hasDigest := strings.Cut(text, "@")
	repository, tag := rest, ""
	// A colon before a slash belongs to a port.
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		repository, tag = rest[:i], rest[i+1:]
		if tag == "" {
			return p, fmt.Errorf("%q has no tag after its colon", text)
		}
	}
	switch {
	case repository == "":
		return p, fmt.Errorf("%q names no image", text)
	case hasDigest && digest == "":
		return p, fmt.Errorf("%q has no digest after its @", text)
	case strings.ContainsAny(text, " \t\n?[]{}()\\"):
		return p, fmt.Errorf("%q has a character that no name of an image has; the wildcards are * and **", text)
	}
	p.name = name{complete(repository), tag, digest}
	// The pattern without its wildcards must be a valid name.
	plain := p.name
	for _, part := range []*string{&plain.repository, &plain.tag} {
		*part = strings.ReplaceAll(strings.ReplaceAll(*part, "**", "*"), "*", "x")
	}
	if strings.Contains(plain.digest, "*") {
		plain.digest = ""
	}
	if _, err := reference.Parse(plain.String()); err != nil {
		return p, fmt.Errorf("%q matches no name: %w", text, err)
	}
	return p, nil
}

// complete adds the default registry, and its library, to a repository that has none.
func complete(repository string) string {
	first, rest, more := strings.Cut(repository, "/")
	switch {
	case strings.HasPrefix(first, "**"): // any registry
		return repository
	case !more:
		return "docker.io/library/" + repository
	case first == "index.docker.io":
		first = "docker.io"
	case first != "localhost" && !strings.ContainsAny(first, ".:"):
		return "docker.io/" + repository
	}
	if first == "docker.io" && !strings.Contains(rest, "/") && !strings.HasPrefix(rest, "**") {
		rest = "library/" + rest
	}
	return first + "/" + rest
}

// matches reports whether a name matches the pattern.
func (p pattern) matches(n name) bool {
	return glob(p.repository, n.repository) &&
		(p.tag == "" || glob(p.tag, n.tag)) &&
		(p.digest == "" || glob(p.digest, n.digest))
}

// glob matches a text with a pattern, in which * stands for any characters but a slash, and ** for those too.
func glob(pattern, text string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == text
	}
	// matched holds, for each prefix of the text, whether the pattern read so far matches it.
	matched := make([]bool, len(text)+1)
	matched[0] = true
	for pattern != "" {
		rest := strings.TrimLeft(pattern, "*")
		stars := len(pattern) - len(rest)
		next := make([]bool, len(text)+1)
		if stars == 0 {
			for i := range len(text) {
				next[i+1] = matched[i] && text[i] == pattern[0]
			}
			rest = pattern[1:]
		} else {
			next[0] = matched[0]
			for i := range len(text) {
				next[i+1] = matched[i+1] || next[i] && (stars > 1 || text[i] != '/')
			}
		}
		matched, pattern = next, rest
	}
	return matched[len(text)]
}

// compare is positive if p is more specific than q: first by repository, then by digest and tag.
func (p pattern) compare(q pattern) int {
	for _, parts := range [][2]string{{p.repository, q.repository}, {p.digest, q.digest}, {p.tag, q.tag}} {
		if d := weight(parts[0]) - weight(parts[1]); d != 0 {
			return d
		}
	}
	return 0
}

// exact outweighs all that a name can have.
const exact = 1 << 16

// weight measures how specific a pattern is: exact without a star, and otherwise more with more letters.
func weight(pattern string) int {
	stars := strings.Count(pattern, "*")
	if pattern != "" && stars == 0 {
		return exact
	}
	w := 2 * (len(pattern) - stars)
	if strings.Contains(pattern, "**") {
		w-- // *.io is more specific than **.io
	}
	return w
}
