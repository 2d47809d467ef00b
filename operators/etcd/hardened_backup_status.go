package etcd

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// Reasons of the condition Ready of an EtcdBackup, besides those of package report.
const (
	// ReasonBackedUp: the last backup is there.
	ReasonBackedUp = "BackedUp"
	// ReasonWorking: a pod is at it.
	ReasonWorking = "Working"
	// ReasonPodPending: the pod cannot begin.
	ReasonPodPending = "PodPending"
	// ReasonSecretMissing: a Secret that the spec names is not there.
	ReasonSecretMissing = "SecretMissing"
)

// begin starts the status from what it says already.
func (p *backupPass) begin() {
	p.status = *p.known.DeepCopy()
	p.status.ObservedGeneration = p.backup.Generation
}

// harvest takes over what the pod that ended last has to say.
func (p *backupPass) harvest() {
	last, ok := p.all.lastOver(func(a attempt) bool { return a.generation == p.backup.Generation })
	if !ok {
		return
	}
	ended := last.ended()
	if p.known.LastSuccessDate != nil && ended.Before(p.known.LastSuccessDate) {
		return // of before: there was one since, whose pod somebody deleted
	}
	result := last.result()
	if result.Error != "" {
		p.fail(result.Reason, fmt.Sprintf("attempt %d: %s", last.number+1, result.Error))
		return
	}
	p.status.Succeeded, p.status.Reason = true, ""
	p.status.EtcdRevision, p.status.EtcdVersion = result.Revision, result.EtcdVersion
	p.status.Location, p.status.SizeBytes, p.status.SHA256 = result.Location, result.SizeBytes, result.SHA256
	p.status.Kept = result.Kept
	p.status.LastSuccessDate = &ended
	message := fmt.Sprintf("Revision %d, taken from %s, is in %s", result.Revision, result.Endpoint, result.Location)
	if result.Warning != "" {
		message += "; " + result.Warning
	}
	p.ready(metav1.ConditionTrue, ReasonBackedUp, message)
}

// backedUp tells whether there is a backup of this very spec, and nothing has failed since.
func (p *backupPass) backedUp() bool {
	ready := p.current()
	return ready != nil && ready.Reason == ReasonBackedUp && ready.ObservedGeneration == p.backup.Generation &&
		p.status.LastSuccessDate != nil
}

// run names the backup that is wanted next: the first of a generation, or the one after the last.
func (p *backupPass) run() string {
	var last int64
	if p.status.LastSuccessDate != nil {
		last = p.status.LastSuccessDate.Unix()
	}
	return fmt.Sprintf("%d/%d", p.backup.Generation, last)
}

// due tells whether there is another backup to take, and how long to wait for that.
func (p *backupPass) due(now time.Time) (bool, time.Duration) {
	if tried := p.all.of(p.run()); len(tried) > 0 {
		_, wait := p.all.next(p.run(), now)
		return true, wait
	}
	if !p.backedUp() {
		return true, 0
	}
	interval := time.Duration(backupPolicy(p.backup).BackupIntervalInSecond) * time.Second
	return interval > 0, p.status.LastSuccessDate.Add(interval).Sub(now)
}

// working says that a pod is at it. What is known of the last backup of this spec stays until there is a result, unless
// the pod cannot begin.
func (p *backupPass) working(a attempt) {
	if waits := a.waitsFor(); waits != "" {
		p.fail(ReasonPodPending, fmt.Sprintf("the pod %s waits: %s", a.pod.Name, waits))
		return
	}
	ready := p.current()
	if ready != nil && ready.ObservedGeneration == p.backup.Generation && ready.Reason != ReasonPodPending &&
		ready.Reason != ReasonSecretMissing && ready.Reason != ReasonRejected {
		return
	}
	p.status.Succeeded, p.status.Reason = false, ""
	p.ready(metav1.ConditionFalse, ReasonWorking, fmt.Sprintf("The pod %s takes the backup", a.pod.Name))
}

func (p *backupPass) fail(reason, message string) {
	p.status.Succeeded = false
	p.status.Reason = reasonText(report.Result{Reason: reason, Error: message})
	p.ready(metav1.ConditionFalse, reason, message)
}

func (p *backupPass) ready(status metav1.ConditionStatus, reason, message string) {
	p.verdict = &metav1.Condition{
		Type: ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: p.backup.Generation,
	}
}

// current is the condition as far as this pass has come.
func (p *backupPass) current() *metav1.Condition {
	if p.verdict != nil {
		return p.verdict
	}
	return meta.FindStatusCondition(p.known.Conditions, ConditionReady)
}

// writeStatus writes the status if it differs from what it was, and tells of a backup, and of each failure.
func (r *hardenedBackups) writeStatus(ctx context.Context, p *backupPass) error {
	if p.verdict != nil {
		meta.SetStatusCondition(&p.status.Conditions, *p.verdict)
	}
	if equality.Semantic.DeepEqual(p.status, p.known) {
		return nil
	}
	written, err := kit.ApplyStatus(ctx, r.client, fieldOwner, p.backup, &p.status)
	if apierrors.IsConflict(err) {
		return nil // deleted meanwhile, and created anew
	}
	if err != nil || written == nil {
		return err
	}
	r.written.Remember(written)
	was, is := meta.FindStatusCondition(p.known.Conditions, ConditionReady), meta.FindStatusCondition(p.status.Conditions, ConditionReady)
	switch {
	case is == nil || is.Reason == ReasonWorking:
	case is.Status == metav1.ConditionTrue:
		if p.known.LastSuccessDate == nil || !p.known.LastSuccessDate.Equal(p.status.LastSuccessDate) || was == nil || was.Reason != is.Reason {
			r.events.Eventf(p.backup, nil, corev1.EventTypeNormal, ReasonBackedUp, "Backup", "%s", is.Message)
		}
	case was == nil || was.Reason != is.Reason || was.Message != is.Message:
		r.events.Eventf(p.backup, nil, corev1.EventTypeWarning, is.Reason, "Backup", "%s", is.Message)
	}
	return nil
}
