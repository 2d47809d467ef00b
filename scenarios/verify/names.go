package verify

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// randomNames knows the names that an operator makes up anew in each play, without generateName: by kind, patterns with * for the
// parts between - and . that are different each time. Without any, each object has a name of its own.
type randomNames struct {
	patterns map[kind][]string
	fixed    map[role]bool // the names that are the same in each play
}

// kind is that of an object.
type kind struct{ apiVersion, kind string }

// separators divide a name into parts, of which one or more are made up.
var separators = regexp.MustCompile(`[-.]`)

// anyPart matches a part of a name.
const anyPart = `[^-.]+`

// learnNames compares the names in plays without a fault. A name that is in some of them only is made up if each of the others has
// one that differs from it in some parts; otherwise the operator made another object.
func learnNames(plays []map[role]bool) randomNames {
	n := randomNames{patterns: map[kind][]string{}, fixed: map[role]bool{}}
	for r := range plays[0] {
		if !slices.ContainsFunc(plays, func(names map[role]bool) bool { return !names[r] }) {
			n.fixed[r] = true
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(plays[0]), role.compare) {
		of := kind{r.apiVersion, r.kind}
		if n.fixed[r] || n.of(r) != r {
			continue
		}
		best := ""
		for other := range plays[1] {
			if n.fixed[other] || other.apiVersion != r.apiVersion || other.kind != r.kind {
				continue
			}
			pattern := common(r.name, other.name)
			if pattern != "" && (best == "" || isCloser(pattern, best)) && n.inAll(plays[1:], of, pattern) {
				best = pattern
			}
		}
		if best != "" {
			n.patterns[of] = append(n.patterns[of], best)
		}
	}
	return n
}

// inAll reports whether each play has a name of a pattern that not all have.
func (n randomNames) inAll(plays []map[role]bool, of kind, pattern string) bool {
	return !slices.ContainsFunc(plays, func(names map[role]bool) bool {
		for r := range names {
			if !n.fixed[r] && r.apiVersion == of.apiVersion && r.kind == of.kind && hasPattern(r.name, pattern) {
				return false
			}
		}
		return true
	})
}

// isCloser reports whether a pattern has fewer parts that are made up than another one, or comes first if it has as many.
func isCloser(pattern, than string) bool {
	a, b := strings.Count(pattern, "*"), strings.Count(than, "*")
	return a < b || a == b && pattern < than
}

// common returns what two names have in common, with * for each part that they have not; empty if they have no part in common.
func common(a, b string) string {
	if !slices.Equal(separators.FindAllString(a, -1), separators.FindAllString(b, -1)) {
		return ""
	}
	inA, inB := separators.Split(a, -1), separators.Split(b, -1)
	var out strings.Builder
	same, at := false, 0
	for i, part := range inA {
		if at += len(part); part == inB[i] {
			same = true
			out.WriteString(part)
		} else {
			out.WriteString("*")
		}
		if at < len(a) {
			out.WriteByte(a[at])
			at++
		}
	}
	if !same {
		return ""
	}
	return out.String()
}

// hasPattern reports whether a name is of a pattern.
func hasPattern(name, pattern string) bool {
	return regexp.MustCompile(expressionOf(pattern)).MatchString(name)
}

// expressionOf returns a pattern as a regular expression.
func expressionOf(pattern string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, anyPart) + "$"
}

// of returns a role with its pattern in place of a name that is made up.
func (n randomNames) of(r role) role {
	if n.fixed[r] {
		return r
	}
	for _, pattern := range n.patterns[kind{r.apiVersion, r.kind}] {
		if hasPattern(r.name, pattern) {
			r.name = pattern
			break
		}
	}
	return r
}

// madeUp reports whether a role is that of names that are made up.
func (n randomNames) madeUp(r role) bool {
	return slices.Contains(n.patterns[kind{r.apiVersion, r.kind}], r.name)
}

// roleOf returns the role of an object.
func (n randomNames) roleOf(o *unstructured.Unstructured) role {
	r := role{o.GetAPIVersion(), o.GetKind(), o.GetName()}
	hash := templateHash(o)
	if prefix := o.GetGenerateName(); prefix != "" && strings.HasPrefix(r.name, prefix) {
		if of, is := strings.CutSuffix(prefix, hash+"-"); hash != "" && is {
			prefix = of + "*-"
		}
		r.name = prefix + "*"
		return r
	}
	if of, is := strings.CutSuffix(r.name, hash); hash != "" && is {
		r.name = of + "*"
		return r
	}
	return n.of(r)
}

// templateHash returns what a Deployment has put into the name of a ReplicaSet, and that into the names of its Pods; empty for other
// objects. It is another one if the ReplicaSet of a Deployment that was deleted before still has the name.
func templateHash(o *unstructured.Unstructured) string {
	if of := o.GetKind(); of != "Pod" && of != "ReplicaSet" {
		return ""
	}
	return o.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
}

// byPattern reports whether the objects of a role are told by a pattern of their names; else their names are the role's, or the API
// server makes them up, and they have the same generateName.
func (n randomNames) byPattern(r role) bool {
	return n.madeUp(r) || strings.Count(r.name, "*") > 1 || r.kind == "ReplicaSet" && strings.HasSuffix(r.name, "*")
}

// children returns objects that the operator made with their patterns, each role once.
func (n randomNames) children(all []*child) []*child {
	known := map[role]bool{}
	var out []*child
	for _, c := range all {
		if c.role = n.of(c.role); known[c.role] {
			continue
		}
		known[c.role] = true
		for i := range c.changes {
			for j := range c.changes[i].deeds {
				c.changes[i].deeds[j].role = c.role
			}
			c.changes[i].at = c.changes[i].deeds[0].at()
		}
		out = append(out, c)
	}
	return out
}

// namesIn returns the roles of all objects that a play wrote or heard of, without those whose names the API server made up.
func namesIn(o *outcome) map[role]bool {
	names, generated := map[role]bool{}, map[role]bool{}
	for _, e := range o.journal.Since(0) {
		if e.Kind != trace.KindWatch && e.Kind != trace.KindCall || e.Object.Namespace != o.namespace || e.Error != "" {
			continue
		}
		r := role{e.Object.APIVersion, e.Object.Kind, e.Object.Name}
		if generateName(e) != "" {
			generated[r] = true
		}
		if r.name != "" && r.kind != "Event" && r.kind != "Lease" {
			names[r] = true
		}
	}
	maps.DeleteFunc(names, func(r role, _ bool) bool { return generated[r] })
	return names
}
