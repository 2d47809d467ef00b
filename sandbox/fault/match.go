package fault

import (
	"encoding/binary"
	"hash/fnv"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

var (
	callVerbs  = []string{trace.VerbCreate, trace.VerbUpdate, trace.VerbPatch, trace.VerbApply, trace.VerbDelete, trace.VerbGet, trace.VerbList}
	writeVerbs = []string{trace.VerbCreate, trace.VerbUpdate, trace.VerbPatch, trace.VerbApply, trace.VerbDelete}
	// secondVerbs are the writes that can conflict with a second writer.
	secondVerbs = []string{trace.VerbUpdate, trace.VerbPatch, trace.VerbApply}
	eventVerbs  = []string{trace.Added, trace.Modified, trace.Deleted}
)

// matcher is a FaultMatch with its defaults applied.
type matcher struct {
	verbs                               []string
	kind, plural                        string // lower case
	shownKind                           string // as the user wrote it
	group, subresource, namespace, name string
	field                               fieldPath
	nth                                 int32
	times                               int32 // 0: no limit
	percent                             int32
	seed                                int64
	seeded                              bool // the fault has a seed of its own
}

// newMatcher prepares the match of a valid fault; without one it matches the next write or event.
func newMatcher(spec v1alpha1.FaultSpec, seed int64) matcher {
	m := matcher{nth: 1, times: 1, percent: 100, seed: seed, verbs: defaultVerbs(spec)}
	match := spec.Match
	if match == nil {
		return m
	}
	if len(match.Verbs) > 0 {
		m.verbs = match.Verbs
	}
	if match.Kind != "" {
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: match.Kind})
		m.kind, m.plural, m.shownKind = strings.ToLower(match.Kind), plural.Resource, match.Kind
	}
	m.group, m.subresource, m.namespace, m.name = match.Group, match.Subresource, match.Namespace, match.Name
	if match.Field != "" {
		m.field, _ = parseField(match.Field) // it was validated
	}
	if match.Nth > 0 {
		m.nth = match.Nth
	}
	if match.Times != nil {
		m.times = *match.Times
	}
	if match.Percent > 0 {
		m.percent = match.Percent
	}
	if match.Seed != nil {
		m.seed, m.seeded = *match.Seed, true
	}
	return m
}

func defaultVerbs(spec v1alpha1.FaultSpec) []string {
	switch {
	case spec.Watch != nil || spec.Stale != nil:
		return eventVerbs
	case spec.Conflict != nil:
		return secondVerbs
	}
	return writeVerbs
}

// target reports whether a target matches, apart from its name. kind is its kind; empty if it is not known.
func (m *matcher) target(t apirequest.Target, kind string) bool {
	switch {
	case m.group != "" && m.group != t.Group && (m.group != "core" || t.Group != ""):
		return false
	case m.namespace != "" && m.namespace != t.Namespace:
		return false
	case m.subresource == "-" && t.Subresource != "", m.subresource != "" && m.subresource != "-" && m.subresource != t.Subresource:
		return false
	}
	return m.kind == "" || m.kind == t.Resource || m.plural == t.Resource || strings.EqualFold(m.kind, kind)
}

// call reports whether a call matches, apart from the field that it changes.
func (m *matcher) call(c *call, kind func(*call) string) bool {
	if !slices.Contains(m.verbs, c.verb) || !m.target(c.Target, "") && (m.kind == "" || !m.target(c.Target, kind(c))) {
		return false
	}
	if m.name == "" {
		return true
	}
	name := c.name()
	if prefix, generated := strings.CutSuffix(name, "*"); generated {
		return glob(m.name, prefix) || glob(m.name, prefix+"00000")
	}
	return name != "" && glob(m.name, name)
}

// glob reports whether a name matches a valid pattern, in which * stands for any characters.
func glob(pattern, name string) bool {
	matches, err := path.Match(pattern, name)
	return matches && err == nil
}

// mixed returns the text that chosen mixes into the seed: the fault's name, so that faults seeded by the run choose
// differently. A fault with its own seed gets none, because names often have a random part.
func (x *fault) mixed() string {
	if x.seeded {
		return ""
	}
	return x.name
}

// chosen reports whether a fault happens at its n-th match. It depends on its arguments alone, so that the same seed
// chooses the same matches, whatever other faults there are and in whatever order things happen.
func chosen(seed int64, fault string, n, percent int32) bool {
	if percent >= 100 {
		return true
	}
	h := fnv.New64a()
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(seed))
	binary.LittleEndian.PutUint32(b[8:], uint32(n))
	_, _ = h.Write([]byte(fault)) // it cannot fail
	_, _ = h.Write(b[:])
	x := h.Sum64()
	// The last bytes hardly reach the high bits of the hash: mix them, as splitmix64 does.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return int32(x%100) < percent
}
