package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const (
	// RunAnnotation is on a pod of the agent: which of several equal things it is there for, such as the backup that is
	// due after the last one.
	RunAnnotation = v1beta2.Group + "/run"
	// AttemptAnnotation is on a pod of the agent: how often this was tried before.
	AttemptAnnotation = v1beta2.Group + "/attempt"
	// GenerationAnnotation is on a pod of the agent: the metadata.generation that it was made for.
	GenerationAnnotation = v1beta2.Group + "/generation"

	// agentAppName is the value of AppLabel on pods of the agent.
	agentAppName = "etcd-agent"
)

const (
	// defaultTimeout of a backup, and of the check of one.
	defaultTimeout = 60 * time.Second
	// startTime is added to the time limit of a pod for its image and volumes. The agent keeps the limit itself; the kubelet
	// enforces it.
	startTime = 30 * time.Second

	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// backOff returns the time to wait after a number of failures in a row.
func backOff(failures int) time.Duration {
	return min(firstRetry<<min(failures-1, 10), lastRetry)
}

// attempt is a pod of the agent.
type attempt struct {
	pod *corev1.Pod
	run string
	// number of attempts of the run before it.
	number     int
	generation int64
}

// over tells whether it has ended.
func (a attempt) over() bool {
	return a.pod.Status.Phase == corev1.PodSucceeded || a.pod.Status.Phase == corev1.PodFailed
}

// active tells whether something is to be expected of it. One that is being deleted may be on a node that is lost, and
// then never ends: it does not count, and what it does meanwhile does no harm.
func (a attempt) active() bool { return !a.over() && a.pod.DeletionTimestamp.IsZero() }

// ended returns when it has ended.
func (a attempt) ended() metav1.Time {
	for _, status := range a.pod.Status.ContainerStatuses {
		if t := status.State.Terminated; t != nil && !t.FinishedAt.IsZero() {
			return t.FinishedAt
		}
	}
	for _, condition := range a.pod.Status.Conditions {
		if condition.Type == corev1.PodReady && !condition.LastTransitionTime.IsZero() {
			return condition.LastTransitionTime
		}
	}
	return a.pod.CreationTimestamp
}

// result returns what an attempt that has ended reported.
func (a attempt) result() report.Result {
	said := ""
	code := "and nobody knows how"
	for _, status := range a.pod.Status.ContainerStatuses {
		if t := status.State.Terminated; t != nil {
			said, code = t.Message, fmt.Sprintf("with exit code %d (%s)", t.ExitCode, cmp.Or(t.Reason, "no reason"))
		}
	}
	result, err := report.Decode(said)
	switch {
	case err == nil && result.Error == "" && a.pod.Status.Phase == corev1.PodSucceeded:
		return result
	case err == nil && result.Error != "":
		return report.Result{Error: result.Error, Reason: cmp.Or(result.Reason, report.ReasonFailed)}
	case a.pod.Status.Reason == "DeadlineExceeded":
		return report.Result{Error: "it took too long: " + a.pod.Status.Message, Reason: report.ReasonTimeout}
	case a.pod.Status.Reason != "":
		return report.Result{Error: strings.TrimSuffix("the pod failed: "+a.pod.Status.Reason+": "+a.pod.Status.Message, ": "), Reason: report.ReasonFailed}
	}
	return report.Result{Error: "the agent ended " + code + " and left no result: see the log of its pod", Reason: report.ReasonFailed}
}

// waitsFor returns why an attempt has not begun; empty if it has, or if the reason passes by itself.
func (a attempt) waitsFor() string {
	for _, condition := range a.pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	for _, status := range a.pod.Status.ContainerStatuses {
		if w := status.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && w.Reason != "" {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	return ""
}

// attempts are those of one owner.
type attempts []attempt

// of returns those of a run, the last one first.
func (as attempts) of(run string) attempts {
	var some attempts
	for _, a := range as {
		if a.run == run {
			some = append(some, a)
		}
	}
	slices.SortFunc(some, func(a, b attempt) int { return b.number - a.number })
	return some
}

// active returns one that is at work.
func (as attempts) active() (attempt, bool) {
	for _, a := range as {
		if a.active() {
			return a, true
		}
	}
	return attempt{}, false
}

// lastOver returns the one that ended last, of those that there is nothing against.
func (as attempts) lastOver(fits func(attempt) bool) (last attempt, found bool) {
	for _, a := range as {
		if !a.over() || !fits(a) {
			continue
		}
		if !found || a.ended().After(last.ended().Time) || a.ended().Time.Equal(last.ended().Time) && a.number > last.number {
			last, found = a, true
		}
	}
	return last, found
}

// next is the number of the next attempt of a run, and how long to wait for it.
func (as attempts) next(run string, now time.Time) (number int, wait time.Duration) {
	tried := as.of(run)
	if len(tried) == 0 {
		return 0, 0
	}
	last := tried[0]
	number = last.number + 1
	if !last.over() {
		return number, 0 // it is being deleted
	}
	return number, last.ended().Add(backOff(number)).Sub(now)
}

// agentPods make the pods of the agent, and find them again.
type agentPods struct {
	client client.Client
	image  string
}

// list returns the pods of an owner. They are found by owner and not by label: anybody can take off a label.
func (p agentPods) list(ctx context.Context, owner client.Object) (attempts, error) {
	var pods corev1.PodList
	if err := p.client.List(ctx, &pods, client.InNamespace(owner.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var found attempts
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !metav1.IsControlledBy(pod, owner) {
			continue
		}
		number, err := strconv.Atoi(pod.Annotations[AttemptAnnotation])
		generation, alsoErr := strconv.ParseInt(pod.Annotations[GenerationAnnotation], 10, 64)
		if errors.Join(err, alsoErr) != nil {
			continue // somebody else gave it to us, whoever that was
		}
		found = append(found, attempt{pod: pod, run: pod.Annotations[RunAnnotation], number: number, generation: generation})
	}
	return found, nil
}

// start makes the pod of an attempt. Its name follows from what it is for, so that it cannot be made twice by somebody
// whose cache is behind.
func (p agentPods) start(ctx context.Context, owner client.Object, job agentJob, run string, number int, timeout time.Duration) (*corev1.Pod, error) {
	job.image = p.image
	job.args("--timeout=" + timeout.String())
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d", owner.GetUID(), run, number)
	name := fmt.Sprintf("%s-%s", owner.GetName(), rand.SafeEncodeString(fmt.Sprintf("%010d", h.Sum64()%1e10)))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: owner.GetNamespace(),
			Labels: map[string]string{AppLabel: agentAppName},
			Annotations: map[string]string{
				RunAnnotation:        run,
				AttemptAnnotation:    strconv.Itoa(number),
				GenerationAnnotation: strconv.FormatInt(owner.GetGeneration(), 10),
			},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:        new(int64((timeout + startTime) / time.Second)),
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			Tolerations:                  tolerationsOf(v1beta2.PodPolicy{}),
			SecurityContext:              podSecurity(v1beta2.PodPolicy{}),
			Containers:                   []corev1.Container{job.container()},
			Volumes:                      job.volumes,
		},
	}
	if err := controllerutil.SetControllerReference(owner, pod, p.client.Scheme()); err != nil {
		return nil, err
	}
	log.FromContext(ctx).Info("Making a pod of the agent", "pod", name, "attempt", number)
	if err := p.client.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create the pod %s: %w", name, err)
	}
	return pod, nil
}

// clean deletes what is at work for nobody any more, and what has ended but for the last one, whose log somebody may want
// to read.
func (p agentPods) clean(ctx context.Context, all attempts, generation int64, run string) error {
	last, found := all.lastOver(func(a attempt) bool { return a.generation == generation })
	if !found {
		last, _ = all.lastOver(func(attempt) bool { return true })
	}
	var errs []error
	for _, a := range all {
		if !a.pod.DeletionTimestamp.IsZero() || a.pod == last.pod || (!a.over() && a.generation == generation && a.run == run) {
			continue
		}
		uid := a.pod.UID
		if err := p.client.Delete(ctx, a.pod, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete the pod %s: %w", a.pod.Name, err))
		}
	}
	return errors.Join(errs...)
}
