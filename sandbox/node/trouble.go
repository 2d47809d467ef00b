package node

import (
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/program"
)

// Match chooses containers. An empty field chooses all.
type Match struct {
	Namespace string
	// Pod is a pattern of names, as in a shell: web-*.
	Pod string
	// Labels that the pod has.
	Labels map[string]string
	// Container is a name.
	Container string
	// Image is a pattern as in an images file: nginx:1.*.
	Image string
}

// Trouble is what goes wrong with the containers that it chooses. It is in what a real node would go wrong with, so it
// shows in statuses and events as there, and says nowhere else that it was made.
type Trouble struct {
	Match

	// PullDelay makes pulling the image slower; a Match.Container does not matter to it.
	PullDelay time.Duration
	// PullError lets pulling the image fail, in the words of a registry: "not found".
	PullError string
	// StartDelay is how long a container runs before its program begins.
	StartDelay time.Duration
	// Unready lets every readiness probe fail which is carried out as operator-lab-probe.
	Unready bool
	// Crash ends containers that start, CrashAfter their start, with CrashCode.
	Crash      bool
	CrashAfter time.Duration
	CrashCode  int
}

// Reasons of a container's end, as containerd has them.
const (
	ReasonCompleted = "Completed"
	ReasonError     = "Error"
	ReasonOOMKilled = "OOMKilled"
	// reasonStart is that of a container whose program could not be started.
	reasonStart = "StartError"
)

type troubles struct {
	mu   sync.Mutex
	list []Trouble
	// changed is closed with the next change; nil while nobody waits for it.
	changed chan struct{}
}

// SetTroubles says what goes wrong from now on, instead of what was said before. What has gone wrong stays; what waits
// waits no longer than the troubles of now say.
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

// subject is what a match is compared with.
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
		(m.Image == "" || program.Matches(m.Image, s.image))
}

// fits: a pattern that is none fits what is the same.
func fits(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil && pattern == name
}

// pulling is what goes wrong with a pull. Of several errors the first is said; delays add up.
func (t *troubles) pulling(pod *runtimeapi.PodSandboxConfig, image string) Trouble {
	return t.of(func(m Match) bool {
		m.Container = ""
		return m.chooses(subject{pod: pod, image: image})
	})
}

// with is what goes wrong with a container.
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
		if all.PullError == "" {
			all.PullError = one.PullError
		}
		if one.Crash && !all.Crash {
			all.Crash, all.CrashAfter, all.CrashCode = true, one.CrashAfter, one.CrashCode
		}
	}
	return all
}

// allContainers are in no order.
func (r *Runtime) allContainers() []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.containers))
}
