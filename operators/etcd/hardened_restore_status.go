package etcd

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// Reasons of the conditions of an EtcdRestore, besides those of package report and of EtcdBackup.
const (
	// ReasonBackupWhole: the backup was read, all of it.
	ReasonBackupWhole = "BackupWhole"
	// ReasonChecking: a pod reads the backup.
	ReasonChecking = "Checking"
	// ReasonClusterMissing: there is no EtcdCluster to restore.
	ReasonClusterMissing = "ClusterMissing"
	// ReasonRestoring: the cluster begins anew with the backup.
	ReasonRestoring = "Restoring"
	// ReasonRestored: the cluster runs on the backup, or did so once.
	ReasonRestored = "Restored"
)

// harvest takes over what the pod that checked the backup has to say, unless that is known.
func (p *restorePass) harvest() {
	last, ok := p.all.lastOver(func(a attempt) bool { return a.generation == p.restore.Generation })
	if !ok || meta.IsStatusConditionTrue(p.known.Conditions, ConditionChecked) {
		return
	}
	result := last.result()
	if result.Error != "" {
		p.status.EtcdRevision, p.status.SHA256 = 0, ""
		p.checked = p.condition(ConditionChecked, metav1.ConditionFalse, result.Reason, fmt.Sprintf("attempt %d: %s", last.number+1, result.Error))
		p.fail(result.Reason, result.Error)
		return
	}
	p.status.EtcdRevision, p.status.SHA256 = result.Revision, result.SHA256
	p.checked = p.condition(ConditionChecked, metav1.ConditionTrue, ReasonBackupWhole,
		fmt.Sprintf("%s is whole: revision %d, %d keys, %d bytes", result.Location, result.Revision, result.TotalKeys, result.SizeBytes))
}

// checking says that a pod reads the backup. What the last attempt said stays, unless the pod cannot begin.
func (p *restorePass) checking(a attempt) {
	if waits := a.waitsFor(); waits != "" {
		p.wants(ReasonPodPending, fmt.Sprintf("the pod %s waits: %s", a.pod.Name, waits))
		return
	}
	if p.checked == nil {
		p.status.Reason = ""
		p.ready = p.condition(ConditionReady, metav1.ConditionFalse, ReasonChecking, fmt.Sprintf("The pod %s reads the backup", a.pod.Name))
	}
}

// follow says how far the cluster controller has come with a backup that is good.
func (r *hardenedRestores) follow(ctx context.Context, p *restorePass) error {
	p.wait = recheckInterval // of the init container of somebody else's pod no event tells
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(p.restore.Namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Annotations[SeededFromAnnotation] != string(p.restore.UID) || !metav1.IsControlledBy(pod, p.cluster) {
			continue
		}
		if result, failed := seedFailure(pod); failed {
			p.wants(result.Reason, fmt.Sprintf("the first member, %s, cannot unpack the backup: %s; until one can, the members of before are kept: delete the EtcdRestore to go back to them",
				pod.Name, result.Error))
			return nil
		}
	}
	message := "The cluster begins anew with the backup"
	if p.cluster.Spec.Paused {
		message = "The backup is good; the cluster is paused, and begins with it when it is no longer"
	}
	p.status.Reason = ""
	p.ready = p.condition(ConditionReady, metav1.ConditionFalse, ReasonRestoring, message)
	return nil
}

// seedFailure returns the last failure of the init container of a first member, and whether there was one.
func seedFailure(pod *corev1.Pod) (report.Result, bool) {
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name != seedContainer {
			continue
		}
		for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
			if t := state.Terminated; t != nil && t.ExitCode != 0 {
				result, err := report.Decode(t.Message)
				if err != nil {
					return report.Result{Reason: report.ReasonFailed, Error: fmt.Sprintf("exit code %d", t.ExitCode)}, true
				}
				return result, true
			}
		}
	}
	return report.Result{}, false
}

// wants says what is in the way.
func (p *restorePass) wants(reason, message string) {
	p.status.Reason = reasonText(report.Result{Reason: reason, Error: message})
	p.ready = p.condition(ConditionReady, metav1.ConditionFalse, reason, message)
}

// fail says that the restore has failed: the cluster is as it was.
func (p *restorePass) fail(reason, message string) {
	p.wants(reason, strings.TrimSuffix(message, ".")+"; the cluster was not touched")
	p.status.Succeeded = false
}

func (p *restorePass) done(message string) {
	p.status.Succeeded, p.status.Reason = true, ""
	if ready := p.current(ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
		p.ready = p.condition(ConditionReady, metav1.ConditionTrue, ReasonRestored, message)
	}
}

func (p *restorePass) condition(kind string, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: p.restore.Generation}
}

// current is a condition as far as this pass has come.
func (p *restorePass) current(kind string) *metav1.Condition {
	switch {
	case kind == ConditionChecked && p.checked != nil:
		return p.checked
	case kind == ConditionReady && p.ready != nil:
		return p.ready
	}
	return meta.FindStatusCondition(p.known.Conditions, kind)
}

// writeStatus writes the status if it differs from what it was, and tells what is new.
func (r *hardenedRestores) writeStatus(ctx context.Context, p *restorePass) error {
	for _, condition := range []*metav1.Condition{p.checked, p.ready} {
		if condition != nil {
			meta.SetStatusCondition(&p.status.Conditions, *condition)
		}
	}
	if equality.Semantic.DeepEqual(p.status, p.known) {
		return nil
	}
	written, err := kit.ApplyStatus(ctx, r.client, fieldOwner, p.restore, &p.status)
	if apierrors.IsConflict(err) {
		return nil // deleted meanwhile, and created anew
	}
	if err != nil || written == nil {
		return err
	}
	r.written.Remember(written)
	for _, is := range []*metav1.Condition{p.checked, p.ready} {
		if is == nil || is.Reason == ReasonChecking || is.Reason == ReasonRestoring {
			continue
		}
		was := meta.FindStatusCondition(p.known.Conditions, is.Type)
		if was != nil && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		kind, action := corev1.EventTypeWarning, "Restore"
		if is.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeNormal
		}
		if is.Type == ConditionChecked {
			action = "Check"
		}
		if is.Type == ConditionReady && p.checked != nil && is.Status != metav1.ConditionTrue && p.checked.Reason == is.Reason {
			continue // the other condition's event has said it
		}
		r.events.Eventf(p.restore, nil, kind, is.Reason, action, "%s", is.Message)
	}
	return nil
}
