package node

import (
	"path"
	"slices"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// Match chooses containers. An empty field chooses all.
type Match struct {
	// Namespace is the namespace of the pod.
	Namespace string
	// Pod is a pattern of names, as in a shell: web-*.
	Pod string
	// Labels are labels that the pod has.
	Labels map[string]string
	// Container is a name.
	Container string
	// Image is a pattern as in an images file: nginx:1.*.
	Image string
}

// Trouble is a fault in the containers that it matches. It affects only what can fail on a real node, so statuses and
// events show it as they would there, and nothing else tells that it was made.
type Trouble struct {
	Match

	// PullDelay makes pulling the image slower; a Match.Container does not matter to it.
	PullDelay time.Duration
	// PullError lets pulling the image fail, in the words of a registry: "not found".
	PullError string
	// StartDelay is the time between the start of a container and that of its program.
	StartDelay time.Duration
	// Unready lets every readiness probe fail which is carried out as operator-lab-probe.
	Unready bool
	// Slow leaves the processes of containers little time: they stand still for [SlowStands], run for [SlowRuns], and so on.
	Slow bool
	// Crash ends every container that starts, after CrashAfter, with the exit code CrashCode.
	Crash bool
	// CrashAfter is the time from a container's start to its crash.
	CrashAfter time.Duration
	// CrashCode is the exit code of a crash.
	CrashCode int
}

// How long the processes of a slow container stand still and run, in turn.
const (
	SlowStands = 400 * time.Millisecond
	SlowRuns   = 50 * time.Millisecond
)

// Reasons for the end of a container, as in containerd.
const (
	ReasonCompleted = "Completed"
	ReasonError     = "Error"
	ReasonOOMKilled = "OOMKilled"
	// reasonStart is for a container whose program could not be started.
	reasonStart = "StartError"
)

type troubles struct {
	mu   sync.Mutex
	list []Trouble
	// changed is closed at the next change; nil while nobody waits for it.
	changed chan struct{}
}

// SetTroubles replaces the current troubles. It does not undo earlier effects. Delays in progress are adjusted to the
// new troubles.
func (r *Runtime) SetTroubles(list []Trouble) {
	r.troubles.mu.Lock()
	defer r.troubles.mu.Unlock()
	r.troubles.list = slices.Clone(list)
	if r.troubles.changed != nil {
		close(r.troubles.changed)
		r.troubles.changed = nil
	}
}

// Kill kills all running containers that a match chooses, as the kernel does: at once, with exit code 137. The reason is
// [ReasonOOMKilled] or [ReasonError]. It returns the containers, as namespace/pod/container.
func (r *Runtime) Kill(m Match, reason string) []string {
	var killed []string
	for _, c := range r.allContainers() {
		if m.chooses(c.subject()) && c.end(ending{code: 128 + 9, reason: reason}) {
			metadata := c.pod.config.GetMetadata()
			killed = append(killed, metadata.GetNamespace()+"/"+metadata.GetName()+"/"+c.name())
		}
	}
	slices.Sort(killed)
	return killed
}

// subject is the data that a match is compared with.
type subject struct {
	pod              *runtimeapi.PodSandboxConfig
	container, image string
}

func (c *container) subject() subject {
	return subject{pod: c.pod.config, container: c.name(), image: c.image.name}
}

func (m Match) chooses(s subject) bool {
	metadata := s.pod.GetMetadata()
	return (m.Namespace == "" || m.Namespace == metadata.GetNamespace()) &&
		(m.Pod == "" || fits(m.Pod, metadata.GetName())) &&
		hasLabels(s.pod.GetLabels(), m.Labels) &&
		(m.Container == "" || m.Container == s.container) &&
		(m.Image == "" || images.Matches(m.Image, s.image))
}

// fits reports whether a name matches a pattern. An invalid pattern only matches itself.
func fits(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil && pattern == name
}

// pulling returns the troubles that apply to a pull. Of several errors the first counts; delays add up.
func (t *troubles) pulling(pod *runtimeapi.PodSandboxConfig, image string) Trouble {
	return t.of(func(m Match) bool {
		m.Container = ""
		return m.chooses(subject{pod: pod, image: image})
	})
}

// with returns the troubles that apply to a container.
func (t *troubles) with(c *container) Trouble {
	return t.of(func(m Match) bool { return m.chooses(c.subject()) })
}

func (t *troubles) of(chosen func(Match) bool) Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all Trouble
	for _, one := range t.list {
		if !chosen(one.Match) {
			continue
		}
		all.PullDelay += one.PullDelay
		all.StartDelay += one.StartDelay
		all.Unready = all.Unready || one.Unready
		all.Slow = all.Slow || one.Slow
		if all.PullError == "" {
			all.PullError = one.PullError
		}
		if one.Crash && !all.Crash {
			all.Crash, all.CrashAfter, all.CrashCode = true, one.CrashAfter, one.CrashCode
		}
	}
	return all
}
