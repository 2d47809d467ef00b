package etcd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const (
	// defaultVersion and defaultRepository are those of a cluster that names none, as published.
	defaultVersion    = "3.2.13"
	defaultRepository = "quay.io/coreos/etcd"

	// UpgradedFromAnnotation is on a pod whose image was changed, until its member is back: the version it had before, and
	// the container that ran it.
	UpgradedFromAnnotation = v1beta2.Group + "/upgraded-from"
)

// versionPattern matches the versions that the definition of EtcdCluster accepts.
var versionPattern = regexp.MustCompile(`^v?([0-9]+)\.([0-9]+)\.([0-9]+)(-[0-9A-Za-z.-]+)?$`)

// version is of etcd, as far as an upgrade minds.
type version struct {
	major, minor, patch int
	rest                string
}

func parseVersion(text string) (version, error) {
	parts := versionPattern.FindStringSubmatch(text)
	if parts == nil {
		return version{}, fmt.Errorf("%q is no version such as 3.2.13", text)
	}
	var v version
	for i, into := range []*int{&v.major, &v.minor, &v.patch} {
		n, err := strconv.Atoi(parts[i+1])
		if err != nil {
			return version{}, fmt.Errorf("%q is no version such as 3.2.13: %w", text, err)
		}
		*into = n
	}
	v.rest = parts[4]
	return v, nil
}

// checkUpgrade tells whether members may go from one version to another: etcd's own rule is one minor version at most, and
// never back to an older one.
func checkUpgrade(from, to string) error {
	next, err := parseVersion(to)
	if err != nil {
		return err
	}
	old, unknown := parseVersion(from)
	if unknown != nil {
		return nil //nolint:nilerr // what runs already is none of our business
	}
	switch {
	case next.major != old.major:
		return fmt.Errorf("from %s to %s is another major version", from, to)
	case next.minor > old.minor+1:
		return fmt.Errorf("from %s to %s is more than one minor version: go to %d.%d first", from, to, old.major, old.minor+1)
	case next.minor < old.minor:
		return fmt.Errorf("from %s to %s is back to an older minor version, which cannot read the data any more", from, to)
	}
	return nil
}

// older tells whether a version is an older minor version, or release, than another one.
func older(a, b string) bool {
	v, errA := parseVersion(a)
	w, errB := parseVersion(b)
	if errA != nil || errB != nil {
		return errA == nil
	}
	if v.major != w.major {
		return v.major < w.major
	}
	if v.minor != w.minor {
		return v.minor < w.minor
	}
	if v.patch != w.patch {
		return v.patch < w.patch
	}
	return v.rest != "" && w.rest == ""
}

// versionOf is the version that a cluster asks for, without a v.
func versionOf(cluster *v1beta2.EtcdCluster) string {
	if cluster.Spec.Version == "" {
		return defaultVersion
	}
	return strings.TrimPrefix(cluster.Spec.Version, "v")
}

func imageOf(cluster *v1beta2.EtcdCluster, version string) string {
	repository := cluster.Spec.Repository
	if repository == "" {
		repository = defaultRepository
	}
	return repository + ":v" + version
}

// podVersion returns the version that a member runs: the one its pod was asked for, or the one before until that has come up.
// A member that never ran has none.
func podVersion(pod *corev1.Pod) string {
	if from, container, ok := strings.Cut(pod.Annotations[UpgradedFromAnnotation], " "); ok {
		if !podReady(pod) || container == containerID(pod) {
			return from
		}
	}
	if !everRan(pod) {
		return ""
	}
	return pod.Annotations[VersionAnnotation]
}

// renewed tells whether the container of a pod is one of its image, after that was changed.
func renewed(pod *corev1.Pod) bool {
	_, container, ok := strings.Cut(pod.Annotations[UpgradedFromAnnotation], " ")
	return !ok || container != containerID(pod)
}

func etcdStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == containerName {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func containerID(pod *corev1.Pod) string {
	if status := etcdStatus(pod); status != nil && status.ContainerID != "" {
		return status.ContainerID
	}
	return "none"
}

func everRan(pod *corev1.Pod) bool {
	status := etcdStatus(pod)
	return status != nil && (status.ContainerID != "" || status.RestartCount > 0)
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// whyNotRunning says in a few words why the container of a member does not run.
func whyNotRunning(pod *corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "its pod is being deleted"
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return strings.TrimSpace("its pod has ended: " + string(pod.Status.Phase) + " " + pod.Status.Reason)
	}
	if reason := cannotStart(pod); reason != "" {
		return "its container does not start: " + reason
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "its pod has no node: " + condition.Message
		}
	}
	return "its pod does not run yet"
}

// cannotStart returns the reason why a container waits; empty if it does not, or if the reason passes by itself.
func cannotStart(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if waiting := status.State.Waiting; waiting != nil {
				switch waiting.Reason {
				case "", "ContainerCreating", "PodInitializing":
				default:
					return waiting.Reason
				}
			}
		}
	}
	return ""
}
