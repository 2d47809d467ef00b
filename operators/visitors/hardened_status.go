package visitors

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
	v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"
)

// waiting are the reasons for a tier that is not rolled out, in the order in which they count.
var waiting = []struct {
	tier   tier
	reason string
}{
	{mysqlTier, v1.ReasonWaitingForMySQL},
	{backendTier, v1.ReasonWaitingForBackend},
	{frontendTier, v1.ReasonWaitingForFrontend},
}

// verdict returns the reason that fits what the pass found, and a sentence for people.
func (p *pass) verdict() (reason, message string) {
	switch {
	case len(p.taken) > 0:
		return v1.ReasonConflict, strings.Join(p.taken, ", ") + " belongs to somebody else: delete it, or use another name"
	case p.rejected != "":
		return v1.ReasonRejected, p.rejected
	}
	for _, w := range waiting {
		if !p.ready(w.tier) {
			return w.reason, fmt.Sprintf("Deployment %s is not rolled out", nameOf(p.app, w.tier))
		}
	}
	return v1.ReasonSiteServed, "MySQL, the backend and the frontend are rolled out"
}

// status returns what the status should be. An image is that of the pods: while they are being replaced it stays.
func (p *pass) status() (status v1.VisitorsAppStatus, reason, message string) {
	status = *p.known.DeepCopy()
	status.ObservedGeneration = p.app.Generation
	for t, image := range map[tier]*string{backendTier: &status.BackendImage, frontendTier: &status.FrontendImage} {
		switch d := p.deployments[t]; {
		case !p.mine(d):
			*image = ""
		case kit.RolledOut(d):
			*image = d.Spec.Template.Spec.Containers[0].Image
		}
	}
	reason, message = p.verdict()
	is := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}
	for kind, holds := range map[string]bool{
		v1.ConditionReady:       reason == v1.ReasonSiteServed,
		v1.ConditionProgressing: strings.HasPrefix(reason, "WaitingFor"),
	} {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: is[holds], Reason: reason, Message: message, ObservedGeneration: p.app.Generation,
		})
	}
	return status, reason, message
}

// writeStatus applies the status if it differs from what it was, and tells in an event if it changed in more than words.
func (r *hardened) writeStatus(ctx context.Context, p *pass) error {
	status, reason, message := p.status()
	if equality.Semantic.DeepEqual(status, p.known) {
		return nil
	}
	written, err := kit.ApplyStatus(ctx, r.client, fieldOwner, p.app, &status)
	if err != nil || written == nil {
		return err
	}
	if last := meta.FindStatusCondition(p.known.Conditions, v1.ConditionReady); last == nil || last.Reason != reason {
		kind := corev1.EventTypeNormal
		if reason == v1.ReasonConflict || reason == v1.ReasonRejected {
			kind = corev1.EventTypeWarning
		}
		r.events.Eventf(p.app, nil, kind, reason, "Look", "%s", message)
	}
	r.written.Remember(written)
	return nil
}
