package etcd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const (
	classicScaling   = v1beta2.ConditionScaling
	classicUpgrading = v1beta2.ConditionUpgrading
)

// classicStatus is the status that the operator works on.
type classicStatus struct {
	v1beta2.EtcdClusterStatus
	clock clock.PassiveClock
}

// writeStatus writes the EtcdCluster if the status is another one than it had. It puts the status into the very object
// that it compares with the next time: when the write fails, the two are equal all the same, and the status is not written
// until it changes again, or an event brings another object (E-09).
func (c *classicCluster) writeStatus(ctx context.Context) error {
	if reflect.DeepEqual(c.cluster.Status, c.status.EtcdClusterStatus) {
		return nil
	}
	c.cluster.Status = c.status.EtcdClusterStatus
	written, err := classicWrite(ctx, c.client, c.cluster)
	if err != nil {
		return fmt.Errorf("update the EtcdCluster: %w", err)
	}
	c.cluster = written
	return nil
}

// classicWrite updates an EtcdCluster and returns what the API server kept of it. The client would leave in the object
// what was dropped.
func classicWrite(ctx context.Context, to client.Client, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(v1beta2.GroupVersion.WithKind(v1beta2.EtcdClusterKind))
	if err := to.Update(ctx, object); err != nil {
		return nil, err
	}
	written := &v1beta2.EtcdCluster{}
	return written, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, written)
}

// reload forgets the EtcdCluster as it was.
func (c *classicCluster) reload(ctx context.Context) error {
	cluster := &v1beta2.EtcdCluster{}
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(c.cluster), cluster); err != nil {
		return err
	}
	c.cluster = cluster
	return nil
}

func classicGone(err error) bool     { return apierrors.IsNotFound(errors.Unwrap(err)) }
func classicConflict(err error) bool { return apierrors.IsConflict(errors.Unwrap(err)) }

// setMembers notes which pods are Ready.
func (s *classicStatus) setMembers(running classicPods) {
	var members v1beta2.MembersStatus
	for i := range running {
		if classicReady(&running[i]) {
			members.Ready = append(members.Ready, running[i].Name)
		} else {
			members.Unready = append(members.Unready, running[i].Name)
		}
	}
	s.Members = members
}

func classicReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

func (s *classicStatus) setScaling(from, to int) {
	reason := "Scaling up"
	if from > to {
		reason = "Scaling down"
	}
	s.set(classicScaling, reason, fmt.Sprintf("Current cluster size: %d, desired cluster size: %d", from, to))
}

func (s *classicStatus) setUpgrading(version string) {
	s.TargetVersion = version
	s.set(classicUpgrading, "Cluster upgrading", "upgrading to "+version)
}

func (s *classicStatus) setAvailable() {
	s.TargetVersion = ""
	s.set(v1beta2.ConditionAvailable, "Cluster available", "")
}

// set sets a condition, which is True as all of them are: what is not the case has none.
func (s *classicStatus) set(kind, reason, message string) {
	now := s.clock.Now().Format(time.RFC3339)
	condition := v1beta2.ClusterCondition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	}
	i := s.condition(kind)
	if i < 0 {
		s.Conditions = append(s.Conditions, condition)
		return
	}
	if old := s.Conditions[i]; old.Reason != reason || old.Message != message || old.Status != metav1.ConditionTrue {
		s.Conditions[i] = condition
	}
}

func (s *classicStatus) clear(kind string) {
	if i := s.condition(kind); i >= 0 {
		s.Conditions = slices.Delete(s.Conditions, i, i+1)
	}
}

func (s *classicStatus) condition(kind string) int {
	return slices.IndexFunc(s.Conditions, func(condition v1beta2.ClusterCondition) bool { return condition.Type == kind })
}

// classicReason is the label of a failure in the metrics. The published one had the whole text, names of members and all:
// as many series as there were failures.
func classicReason(err error) string {
	switch fatal := (&classicFatal{}); {
	case errors.Is(err, errClassicQuorum):
		return errClassicQuorum.Error()
	case errors.As(err, &fatal):
		return "fatal"
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded.Error()
	}
	if etcd := (rpctypes.EtcdError{}); errors.As(err, &etcd) {
		return strings.TrimPrefix(etcd.Error(), "etcdserver: ")
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "other"
}

func classicFailure(reason string) { classicFailures.WithLabelValues(reason).Inc() }
