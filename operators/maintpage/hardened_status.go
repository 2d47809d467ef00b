package maintpage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// verdict holds the conditions of a MaintPage, and the type of the event, that go with a reason.
type verdict struct {
	ready, progressing metav1.ConditionStatus
	event              string // the type of the event that says so first
}

// verdicts are all that a MaintPage can show.
var verdicts = map[string]verdict{
	v1alpha1.ReasonProductionServed:  {metav1.ConditionTrue, metav1.ConditionFalse, corev1.EventTypeNormal},
	v1alpha1.ReasonMaintenanceServed: {metav1.ConditionTrue, metav1.ConditionFalse, corev1.EventTypeNormal},
	v1alpha1.ReasonWaitingForPage:    {metav1.ConditionFalse, metav1.ConditionTrue, corev1.EventTypeNormal},
	v1alpha1.ReasonPageNotReady:      {metav1.ConditionFalse, metav1.ConditionTrue, corev1.EventTypeNormal},
	v1alpha1.ReasonConflict:          {metav1.ConditionFalse, metav1.ConditionFalse, corev1.EventTypeWarning},
	v1alpha1.ReasonRejected:          {metav1.ConditionFalse, metav1.ConditionFalse, corev1.EventTypeWarning},
}

// verdict returns the reason that fits what the pass found, and a sentence for people.
func (p *pass) verdict() (reason, message string) {
	want, served := p.wanted(), p.served()
	switch {
	case len(p.taken) > 0:
		return v1alpha1.ReasonConflict, strings.Join(p.taken, ", ") + " belongs to somebody else: delete it, or use another name"
	case p.rejected != "":
		return v1alpha1.ReasonRejected, p.rejected
	case served == want && p.answers(want) && want == maintenance:
		return v1alpha1.ReasonMaintenanceServed, "Requests go to the maintenance page"
	case served == want && p.answers(want):
		return v1alpha1.ReasonProductionServed, "Requests go to the production page"
	case served == want.other():
		return v1alpha1.ReasonWaitingForPage, fmt.Sprintf("Requests still go to the %s page: %s", served, p.whyNot(want))
	default:
		return v1alpha1.ReasonPageNotReady, fmt.Sprintf("The %s page is not Ready: %s", want, p.whyNot(want))
	}
}

// lastReason returns the reason that the status has already; empty if it has none.
func (p *pass) lastReason() string {
	if ready := meta.FindStatusCondition(p.known.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// wasWaiting tells whether the last pass left the Service at the page that is not asked for.
func (p *pass) wasWaiting() bool { return p.lastReason() == v1alpha1.ReasonWaitingForPage }

// status returns what the status should be.
func (p *pass) status() v1alpha1.MaintPageStatus {
	status := *p.known.DeepCopy()
	status.ObservedGeneration = p.page.Generation
	status.MaintPublishStatus = v1alpha1.NotPublished
	if p.served() == maintenance && p.answers(maintenance) {
		status.MaintPublishStatus = v1alpha1.Published
	}
	reason, message := p.verdict()
	for kind, is := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReady:       verdicts[reason].ready,
		v1alpha1.ConditionProgressing: verdicts[reason].progressing,
	} {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: message, ObservedGeneration: p.page.Generation,
		})
	}
	return status
}

// writeStatus applies the status if it differs from what it was, and tells in an event if it changed in
// more than words. The patch carries the UID, so that it cannot reach a later MaintPage of the same name.
func (r *hardened) writeStatus(ctx context.Context, p *pass) error {
	status := p.status()
	if equality.Semantic.DeepEqual(status, p.known) {
		return nil
	}
	written, err := kit.ApplyStatus(ctx, r.client, fieldOwner, p.page, &status)
	if err != nil || written == nil {
		return err
	}
	if reason, message := p.verdict(); reason != p.lastReason() {
		r.note(p, nil, verdicts[reason].event, reason, "Look", "%s", message)
	}
	r.written.Remember(written)
	return nil
}
