package operatorhost

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Others records in a journal what others do to the objects that occur in it, and to what OLM installs: Kubernetes'
// controllers, the scheduler, and you with kubectl in another terminal. It reads the API server's audit log, which names
// the client of every request.
type Others struct {
	journal *trace.Journal

	mu    sync.Mutex
	skip  map[string]bool   // programs whose calls are recorded already
	seen  int64             // the journal has been read up to this Seq
	kinds map[string]bool   // the kinds that occur in the journal
	uids  map[string]bool   // the UIDs that occur in the journal
	named map[string]string // kinds by resource
	early []early           // the newest that concern nothing so far
}

// early is an event about an object whose owner is not in the journal: the call that made the owner may only be recorded when
// its answer has arrived.
type early struct {
	trace.Event
	owners []string
}

// How many of them are kept, and for how long: one that is recorded much later would be told to have happened then.
const (
	earlyLimit = 64
	earlyAge   = time.Second
)

// NewOthers returns an Others for a journal. Calls of the programs in skip, matched with the beginning of the user
// agent, are left out: taps record them.
func NewOthers(journal *trace.Journal, skip ...string) *Others {
	o := &Others{journal: journal, skip: map[string]bool{}, kinds: map[string]bool{}, uids: map[string]bool{}, named: map[string]string{}}
	for _, name := range skip {
		o.skip[name] = true
	}
	for _, name := range olmResources {
		o.kinds[olmGroup+"/"+name] = true
	}
	return o
}

// Skip leaves out the calls of one more program from now on.
func (o *Others) Skip(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.skip[name] = true
}

func (o *Others) skips(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.skip[name]
}

// Note reads one line of the audit log. A line that cannot be parsed is ignored.
func (o *Others) Note(line []byte) {
	var audit auditv1.Event
	if json.Unmarshal(line, &audit) != nil || audit.ObjectRef == nil || o.skips(program(&audit)) {
		return
	}
	e := event(&audit)
	if answered := audit.StageTimestamp.Sub(o.journal.Header().Start); !audit.StageTimestamp.IsZero() {
		e.At = max(1, min(answered, o.journal.Elapsed())) // the line comes later
	}
	var owners []string
	if len(e.After) > 0 {
		var copied bool
		if owners, copied = describe(&e); copied {
			return
		}
	}
	o.catchUp()
	o.name(&e)
	waiting := o.takeEarly()
	for _, e := range append(waiting, early{e, owners}) {
		switch {
		case o.concerns(e.Event, e.owners):
			o.journal.Append(e.Event)
		case len(e.owners) > 0:
			o.keepEarly(e)
		}
	}
}

func (o *Others) takeEarly() []early {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, taken := o.journal.Elapsed(), o.early
	o.early = nil
	return slices.DeleteFunc(taken, func(e early) bool { return e.At < now-earlyAge })
}

func (o *Others) keepEarly(e early) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.early = append(o.early, e)
	o.early = o.early[max(0, len(o.early)-earlyLimit):]
}

// Find records what belongs to objects of the journal, was there when their operator started, and no informer told of: what
// Kubernetes' controllers made of them before. It lists the objects of the wanted kinds with the given function.
func (o *Others) Find(list func(wanted func(schema.GroupKind) bool) ([]unstructured.Unstructured, error)) error {
	if !slices.ContainsFunc(o.journal.Since(0), func(e *trace.Event) bool { return e.Initial }) {
		return nil // nothing was there
	}
	all, err := list(func(kind schema.GroupKind) bool { return kind.Group != v1alpha1.GroupVersion.Group })
	if err != nil && len(all) == 0 { // what could be listed is better than nothing: an aggregated API may be down
		return err
	}
	kinds := map[schema.GroupKind]bool{}
	for _, e := range o.belonging(all) {
		kinds[schema.FromAPIVersionAndKind(e.Object.APIVersion, e.Object.Kind).GroupKind()] = true
		o.mu.Lock()
		o.kinds[resource(e.Object)] = true
		o.mu.Unlock()
	}
	if len(kinds) == 0 {
		return nil
	}
	// Once more, because only from now on it is recorded when one of them goes.
	if all, err = list(func(kind schema.GroupKind) bool { return kinds[kind] }); err != nil && len(all) == 0 {
		return err
	}
	for _, e := range o.belonging(all) {
		o.journal.Append(e)
	}
	return nil
}

// belonging returns an event for each object that is not in the journal and has an owner there, each owner before what it owns.
func (o *Others) belonging(all []unstructured.Unstructured) []trace.Event {
	o.catchUp()
	o.mu.Lock()
	known := maps.Clone(o.uids)
	o.mu.Unlock()
	header := o.journal.Header()
	var out []trace.Event
	for grown := true; grown; {
		grown = false
		for i := range all {
			object := &all[i]
			owned := slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return known[string(r.UID)] })
			if !owned || known[string(object.GetUID())] {
				continue
			}
			grown = true
			known[string(object.GetUID())] = true
			raw, _ := object.MarshalJSON() // it came as JSON
			out = append(out, trace.Event{
				Kind: trace.KindFound, Object: trace.Ref{
					APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
					Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()),
				},
				ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(), After: raw,
				Initial: header.Older(object.GetCreationTimestamp().Time),
			})
		}
	}
	return out
}

// name sets an object's kind from others of its resource: a failed request, or one for a subresource, has the resource
// only.
func (o *Others) name(e *trace.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind := o.named[resource(e.Object)]; kind != "" {
		e.Object.Kind = kind
	}
}

// event returns what is known from the request itself.
func event(audit *auditv1.Event) trace.Event {
	ref := audit.ObjectRef
	e := trace.Event{
		Kind: trace.KindCall, Actor: actor(audit), Verb: audit.Verb, Source: trace.Server,
		Object: trace.Ref{
			APIVersion: apiVersion(ref.APIGroup, ref.APIVersion), Kind: ref.Resource,
			Namespace: ref.Namespace, Name: ref.Name, Subresource: ref.Subresource, UID: string(ref.UID),
		},
		Duration: audit.StageTimestamp.Sub(audit.RequestReceivedTimestamp.Time).Round(time.Microsecond),
	}
	if audit.Verb == "deletecollection" {
		e.Verb = trace.VerbDeleteAll
	}
	if status := audit.ResponseStatus; status != nil {
		e.Status = int(status.Code)
		if status.Code >= 400 {
			e.Error, e.Reason = status.Message, string(status.Reason)
		}
	}
	if audit.ResponseObject != nil && e.Error == "" {
		e.After = audit.ResponseObject.Raw
	}
	return e
}

func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

const olmGroup = "operators.coreos.com"

// BesideOLM returns a function that reports whether a call or a watch event of OLM's operators is left out of the journal: reads of kinds
// that are not OLM's, since they read all kinds in all namespaces, and whatever is about copies of ClusterServiceVersions.
func BesideOLM() func(*trace.Event) bool {
	var mu sync.Mutex
	copies := map[string]bool{} // by UID
	return func(e *trace.Event) bool {
		group, _, _ := strings.Cut(e.Object.APIVersion, "/")
		if group != olmGroup {
			return !e.IsWrite()
		}
		mu.Lock()
		defer mu.Unlock()
		if e.Object.UID != "" && isCopy(e.After) {
			copies[e.Object.UID] = true
		}
		return copies[e.Object.UID]
	}
}

// isCopy reports whether an object is a copy that OLM has made of a ClusterServiceVersion.
func isCopy(raw json.RawMessage) bool {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(raw, &object) != nil {
		return false
	}
	_, is := object.Labels[olmCopy]
	return is
}

// olmResources are recorded also while none occurs in the journal: by them one sees what OLM does. They are what somebody asked
// for, the plan to install it, and what is installed, which owns the Deployments.
var olmResources = []string{"subscriptions", "installplans", "clusterserviceversions"}

// olmCopy is the label of ClusterServiceVersions that OLM copies into each namespace that an operator watches: what happens to
// the one that they are copies of is recorded.
const olmCopy = "olm.copiedFrom"

// describe adds the object of the response. It returns the UIDs of its owners, and whether it is a copy of OLM's.
func describe(e *trace.Event) (owners []string, copied bool) {
	var object struct {
		APIVersion, Kind string
		Metadata         struct {
			Name, Namespace, UID, ResourceVersion string
			Generation                            int64
			OwnerReferences                       []struct{ UID string }
			Labels                                map[string]string
		}
		Details struct{ UID string } // of a Status
	}
	if json.Unmarshal(e.After, &object) != nil || object.Kind == "Status" {
		e.After = nil // the response to a deletion is a Status, which names the object
		e.Object.UID = object.Details.UID
		return nil, false
	}
	switch {
	case object.Kind == "PartialObjectMetadata": // who asked wanted no more
		e.After = nil
	case e.Object.Subresource == "" || e.Object.Subresource == "status":
		e.Object.APIVersion, e.Object.Kind = object.APIVersion, object.Kind
	}
	e.Object.Name, e.Object.Namespace, e.Object.UID = object.Metadata.Name, object.Metadata.Namespace, object.Metadata.UID
	e.ResourceVersion, e.Generation = object.Metadata.ResourceVersion, object.Metadata.Generation
	for _, owner := range object.Metadata.OwnerReferences {
		owners = append(owners, owner.UID)
	}
	_, copied = object.Metadata.Labels[olmCopy]
	return owners, copied
}

// catchUp collects the kinds and objects of new events in the journal.
func (o *Others) catchUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, known := range o.journal.Since(o.seen) {
		o.seen = known.Seq
		if known.Kind != trace.KindWatch && known.Kind != trace.KindCall && known.Kind != trace.KindFound {
			continue
		}
		o.kinds[resource(known.Object)] = true
		o.uids[known.Object.UID] = true
		if known.Object.Kind != strings.ToLower(known.Object.Kind) { // else it is the name of a resource
			o.named[resource(known.Object)] = known.Object.Kind
		}
	}
}

// concerns reports whether the journal covers an object: its kind occurs in it, or one of its owners does.
func (o *Others) concerns(e trace.Event, owners []string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, owner := range owners {
		if o.uids[owner] {
			o.uids[e.Object.UID] = true
			return true
		}
	}
	return o.kinds[resource(e.Object)]
}

// resource returns the resource of a kind as in an audit event without an object: lower case and plural. Kinds with an
// irregular plural are still found by their objects.
func resource(ref trace.Ref) string {
	kind := strings.ToLower(ref.Kind)
	if !strings.HasSuffix(kind, "s") {
		kind += "s"
	}
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return group + "/" + kind
}

// actor returns the sender of a request: the program, and for Kubernetes' controllers which of them.
func actor(audit *auditv1.Event) string {
	if as := audit.ImpersonatedUser; as != nil && as.Username == trace.Demo {
		return trace.Demo
	}
	switch name := program(audit); name {
	case "kube-controller-manager", "kube-scheduler":
		part := audit.UserAgent[strings.LastIndex(audit.UserAgent, "/")+1:]
		if part == "" || strings.ContainsAny(part, " ()") {
			return name
		}
		return name + "/" + part
	case "kubectl":
		return "you"
	case "":
		return audit.User.Username
	default:
		return name
	}
}

// program returns the first word of the user agent, as in "kubectl/v1.36.3 (linux/amd64)".
func program(audit *auditv1.Event) string {
	name, _, _ := strings.Cut(audit.UserAgent, "/")
	return name
}
