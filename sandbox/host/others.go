package host

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Others writes into a journal what everybody else does to the objects the journal is about: Kubernetes' controllers,
// the scheduler, and you with kubectl in another terminal. It reads the API server's audit log, which names the
// client of every request.
type Others struct {
	journal *trace.Journal
	skip    map[string]bool // programs whose calls are in the journal already

	mu    sync.Mutex
	seen  int64             // Seq up to which the journal's objects are known
	kinds map[string]bool   // the kinds the journal is about
	uids  map[string]bool   // and the objects
	named map[string]string // the kinds by their resources
}

// NewOthers returns a writer into a journal. The calls of the named programs, which is how their user agents begin, are
// left out: taps record them.
func NewOthers(journal *trace.Journal, skip ...string) *Others {
	o := &Others{journal: journal, skip: map[string]bool{}, kinds: map[string]bool{}, uids: map[string]bool{}, named: map[string]string{}}
	for _, name := range skip {
		o.skip[name] = true
	}
	return o
}

// Note reads one line of the audit log. A line that cannot be read is left out: it is no business of the operator's.
func (o *Others) Note(line []byte) {
	var audit auditv1.Event
	if json.Unmarshal(line, &audit) != nil || audit.ObjectRef == nil || o.skip[program(&audit)] {
		return
	}
	e := event(&audit)
	var owners []string
	if len(e.After) > 0 {
		owners = describe(&e)
	}
	o.catchUp()
	o.name(&e)
	if o.concerns(e, owners) {
		o.journal.Append(e)
	}
}

// name gives an object the kind that others of its resource have: a request that failed, or that was for a subresource, says
// the resource only.
func (o *Others) name(e *trace.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind := o.named[resource(e.Object)]; kind != "" {
		e.Object.Kind = kind
	}
}

// event is what the request itself says.
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

// describe adds what the object in the response says, and returns the UIDs of its owners.
func describe(e *trace.Event) (owners []string) {
	var object struct {
		APIVersion, Kind string
		Metadata         struct {
			Name, Namespace, UID, ResourceVersion string
			Generation                            int64
			OwnerReferences                       []struct{ UID string }
		}
	}
	if json.Unmarshal(e.After, &object) != nil || object.Kind == "Status" {
		e.After = nil // a deletion answers with a Status
		return nil
	}
	if e.Object.Subresource == "" || e.Object.Subresource == "status" {
		e.Object.APIVersion, e.Object.Kind = object.APIVersion, object.Kind
	}
	e.Object.Name, e.Object.Namespace, e.Object.UID = object.Metadata.Name, object.Metadata.Namespace, object.Metadata.UID
	e.ResourceVersion, e.Generation = object.Metadata.ResourceVersion, object.Metadata.Generation
	for _, owner := range object.Metadata.OwnerReferences {
		owners = append(owners, owner.UID)
	}
	return owners
}

// catchUp learns what the journal is about.
func (o *Others) catchUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, known := range o.journal.Since(o.seen) {
		o.seen = known.Seq
		if known.Kind != trace.KindWatch && known.Kind != trace.KindCall {
			continue
		}
		o.kinds[resource(known.Object)] = true
		o.uids[known.Object.UID] = true
		if known.Object.Kind != strings.ToLower(known.Object.Kind) { // or it is a resource's name
			o.named[resource(known.Object)] = known.Object.Kind
		}
	}
}

// concerns reports whether the journal is about the object: its kind is in it, or it belongs to an object that is.
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

// resource names a kind the way an audit event does that has no object: in lower case and plural. Kinds whose plural
// is irregular are still found by their objects.
func resource(ref trace.Ref) string {
	kind := strings.ToLower(ref.Kind)
	if !strings.HasSuffix(kind, "s") {
		kind += "s"
	}
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return group + "/" + kind
}

// actor names who sent the request: the program, and for Kubernetes' controllers which of them.
func actor(audit *auditv1.Event) string {
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

// program is the first word of the user agent, as in "kubectl/v1.36.3 (linux/amd64)".
func program(audit *auditv1.Event) string {
	name, _, _ := strings.Cut(audit.UserAgent, "/")
	return name
}
