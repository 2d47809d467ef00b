package fault

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

var (
	whens   = []v1alpha1.When{v1alpha1.Before, v1alpha1.After}
	replies = []v1alpha1.APIReply{
		v1alpha1.ReplyConflict, v1alpha1.ReplyInternalError, v1alpha1.ReplyServiceUnavailable, v1alpha1.ReplyTooManyRequests,
		v1alpha1.ReplyForbidden, v1alpha1.ReplyTimeout, v1alpha1.ReplyLost, v1alpha1.ReplyTrue,
	}
	actions  = []v1alpha1.WatchAction{v1alpha1.WatchCut, v1alpha1.WatchDelay, v1alpha1.WatchCoalesce, v1alpha1.WatchGone}
	programs = []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
		"catalog-operator", "olm-operator", "package-server", "opm",
	}
)

// Validate returns all that is wrong with a fault.
func Validate(spec v1alpha1.FaultSpec) field.ErrorList {
	root := field.NewPath("spec")
	errs := validateKind(root, spec)
	if d := spec.ExpireAfter; d != nil {
		errs = append(errs, positive(root.Child("expireAfter"), *d)...)
	}
	if spec.Match != nil {
		errs = append(errs, validateMatch(root.Child("match"), spec)...)
	}
	if x := spec.Crash; x != nil {
		p := root.Child("crash")
		errs = append(errs, known(p.Child("when"), x.When, whens)...)
		errs = append(errs, notNegative(p.Child("restartAfter"), x.RestartAfter)...)
	}
	if x := spec.Hold; x != nil {
		p := root.Child("hold")
		errs = append(errs, known(p.Child("when"), x.When, whens)...)
		if x.For != nil {
			errs = append(errs, positive(p.Child("for"), *x.For)...)
		}
	}
	if x := spec.API; x != nil {
		errs = append(errs, validateAPI(root.Child("api"), x)...)
	}
	if x := spec.Watch; x != nil {
		errs = append(errs, validateWatch(root.Child("watch"), x)...)
	}
	if x := spec.Stale; x != nil && x.For != nil {
		errs = append(errs, positive(root.Child("stale", "for"), *x.For)...)
	}
	if x := spec.Conflict; x != nil && x.Patch != nil {
		errs = append(errs, validatePatch(root.Child("conflict", "patch"), x.Patch.Raw)...)
	}
	if x := spec.ControlPlane; x != nil {
		p := root.Child("controlPlane", "program")
		if x.Program == "" {
			errs = append(errs, field.Required(p, "one of "+strings.Join(programs, ", ")))
		} else {
			errs = append(errs, known(p, x.Program, programs)...)
		}
	}
	if x := spec.Pod; x != nil {
		errs = append(errs, validatePod(root.Child("pod"), x)...)
	}
	if x := spec.Node; x != nil {
		errs = append(errs, validateNode(root.Child("node"), x)...)
	}
	if x := spec.Image; x != nil {
		errs = append(errs, validateImage(root.Child("image"), x)...)
	}
	return errs
}

// validateKind checks that a fault is exactly one thing.
func validateKind(root *field.Path, spec v1alpha1.FaultSpec) field.ErrorList {
	var set []string
	for _, one := range []struct {
		name string
		is   bool
	}{
		{"crash", spec.Crash != nil},
		{"hold", spec.Hold != nil},
		{"api", spec.API != nil},
		{"watch", spec.Watch != nil},
		{"stale", spec.Stale != nil},
		{"conflict", spec.Conflict != nil},
		{"controlPlane", spec.ControlPlane != nil},
		{"pod", spec.Pod != nil},
		{"node", spec.Node != nil},
		{"image", spec.Image != nil},
	} {
		if one.is {
			set = append(set, one.name)
		}
	}
	if len(set) == 0 {
		return field.ErrorList{field.Required(root, "one of crash, hold, api, watch, stale, conflict, controlPlane, pod, node and image: what is to go wrong")}
	}
	var errs field.ErrorList
	for _, more := range set[1:] {
		errs = append(errs, field.Forbidden(root.Child(more), "a fault is one thing, and this one is "+set[0]+" already: make another fault"))
	}
	return errs
}

func validateMatch(p *field.Path, spec v1alpha1.FaultSpec) field.ErrorList {
	m := spec.Match
	errs := validateVerbs(p.Child("verbs"), spec)
	if strings.ContainsAny(m.Kind, "/.* ") {
		errs = append(errs, field.Invalid(p.Child("kind"), m.Kind, "is to be a kind such as Zundoko; its group has a field of its own"))
	}
	if m.Subresource != "" && (spec.Watch != nil || spec.Stale != nil && (len(m.Verbs) == 0 || slices.Contains(eventVerbs, m.Verbs[0]))) {
		errs = append(errs, field.Forbidden(p.Child("subresource"), "watch events have none"))
	}
	errs = append(errs, oneNamespace(p.Child("namespace"), m.Namespace)...)
	if strings.ContainsAny(m.Name, "/?[]") {
		errs = append(errs, field.Invalid(p.Child("name"), m.Name, "is to be a name, in which only * stands for others; the namespace has a field of its own"))
	}
	if m.Field != "" {
		errs = append(errs, validateField(p.Child("field"), spec)...)
	}
	if m.Nth < 0 {
		errs = append(errs, field.Invalid(p.Child("nth"), m.Nth, "must be 1 or more: matches are counted from 1"))
	}
	if m.Times != nil && *m.Times < 0 {
		errs = append(errs, field.Invalid(p.Child("times"), *m.Times, "must be 0, which is every match, or more"))
	}
	if m.Percent < 0 || m.Percent > 100 {
		errs = append(errs, field.Invalid(p.Child("percent"), m.Percent, "must be between 1 and 100"))
	}
	return errs
}

func validateVerbs(p *field.Path, spec v1alpha1.FaultSpec) field.ErrorList {
	allowed := callVerbs
	switch {
	case spec.Watch != nil:
		allowed = eventVerbs
	case spec.Conflict != nil:
		allowed = secondVerbs
	case spec.Stale != nil && len(spec.Match.Verbs) > 0:
		allowed = slices.Concat(eventVerbs, writeVerbs)
		if slices.Contains(eventVerbs, spec.Match.Verbs[0]) {
			allowed = eventVerbs
		} else if slices.Contains(writeVerbs, spec.Match.Verbs[0]) {
			allowed = writeVerbs
		}
	}
	var errs field.ErrorList
	for i, verb := range spec.Match.Verbs {
		switch at := p.Index(i); {
		case slices.Contains(allowed, verb):
		case spec.Stale != nil && (slices.Contains(eventVerbs, verb) || slices.Contains(callVerbs, verb)):
			errs = append(errs, field.Invalid(at, verb, "is none of "+strings.Join(allowed, ", ")+": a stale fault begins either at events or at writes"))
		case spec.Watch == nil && slices.Contains(eventVerbs, verb):
			errs = append(errs, field.Invalid(at, verb, "is a watch event, and only a watch fault has those; calls have "+strings.Join(allowed, ", ")))
		case spec.Watch != nil && slices.Contains(callVerbs, verb):
			errs = append(errs, field.Invalid(at, verb, "is a call, and a watch fault has events: "+strings.Join(allowed, ", ")))
		case spec.Conflict != nil && slices.Contains(callVerbs, verb):
			errs = append(errs, field.Invalid(at, verb, "cannot meet a second writer; these can: "+strings.Join(allowed, ", ")))
		default:
			errs = append(errs, field.NotSupported(at, verb, allowed))
		}
	}
	return errs
}

func validateField(p *field.Path, spec v1alpha1.FaultSpec) field.ErrorList {
	m := spec.Match
	if _, err := parseField(m.Field); err != nil {
		return field.ErrorList{field.Invalid(p, m.Field, err.Error()+`; a path such as spec.replicas or metadata.annotations["example.com/word"] is meant`)}
	}
	changeless := func(verb string) bool {
		return slices.Contains([]string{trace.VerbGet, trace.VerbList, trace.VerbDelete, trace.Deleted}, verb)
	}
	if len(m.Verbs) > 0 && !slices.ContainsFunc(m.Verbs, func(verb string) bool { return !changeless(verb) }) {
		return field.ErrorList{field.Invalid(p, m.Field, "is changed by no "+strings.Join(m.Verbs, " or "))}
	}
	return nil
}

func validateAPI(p *field.Path, x *v1alpha1.APIFault) field.ErrorList {
	errs := known(p.Child("reply"), x.Reply, replies)
	errs = append(errs, notNegative(p.Child("delay"), x.Delay)...)
	if x.Reply == v1alpha1.ReplyTrue && x.Delay.Duration == 0 {
		errs = append(errs, field.Required(p.Child("delay"), "the true answer without a delay is no fault"))
	}
	return errs
}

func validateWatch(p *field.Path, x *v1alpha1.WatchFault) field.ErrorList {
	if x.Action == "" {
		return field.ErrorList{field.Required(p.Child("action"), "one of Cut, Delay, Coalesce, Gone")}
	}
	errs := known(p.Child("action"), x.Action, actions)
	if x.For != nil {
		if x.Action != v1alpha1.WatchDelay {
			errs = append(errs, field.Forbidden(p.Child("for"), "only a Delay takes time"))
		}
		errs = append(errs, positive(p.Child("for"), *x.For)...)
	}
	return errs
}

// validatePatch checks that a merge patch is an object that leaves the object's identity alone.
func validatePatch(p *field.Path, raw []byte) field.ErrorList {
	var patch map[string]any
	if err := json.Unmarshal(raw, &patch); err != nil || patch == nil {
		return field.ErrorList{field.Invalid(p, string(raw), "must be a JSON merge patch: an object with the fields to be changed")}
	}
	if len(patch) == 0 {
		return field.ErrorList{field.Required(p, "an empty patch changes nothing, so that nothing can conflict")}
	}
	return nil
}

func oneNamespace(p *field.Path, namespace string) field.ErrorList {
	if !strings.ContainsAny(namespace, "*/") {
		return nil
	}
	return field.ErrorList{field.Invalid(p, namespace, "is to be one namespace; leave it out for all")}
}

// known checks that a value is one of an enum's, or left out.
func known[T ~string](p *field.Path, v T, all []T) field.ErrorList {
	if v == "" || slices.Contains(all, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(p, v, all)}
}

func positive(p *field.Path, d metav1.Duration) field.ErrorList {
	if d.Duration > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(p, d.Duration.String(), "must be longer than nothing; leave it out for no end")}
}

func notNegative(p *field.Path, d metav1.Duration) field.ErrorList {
	if d.Duration >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(p, d.Duration.String(), "must not be negative")}
}
