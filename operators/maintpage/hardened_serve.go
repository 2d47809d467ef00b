package maintpage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// PageLabel is the label by which hardened tells the pods of an application from those of a maintenance
// page, whatever the names of the two are.
const PageLabel = "maintpage.example.com/page"

// ImageAnnotation is on the Pod of a maintenance page that hardened made: the image that was asked for. What the Pod itself
// says may be another one, where a webhook has its own ideas about images.
const ImageAnnotation = "maintpage.example.com/image"

// site is one of the two pages, and the value of PageLabel.
type site string

const (
	production  site = "production"
	maintenance site = "maintenance"
)

func (s site) other() site {
	if s == production {
		return maintenance
	}
	return production
}

// selectorOf are the labels of the pods of a page, and of no others.
func selectorOf(page *v1alpha1.MaintPage, s site) map[string]string {
	app := page.Spec.AppConfig.AppName
	if s == maintenance {
		app = page.Name
	}
	return map[string]string{appLabel: app, PageLabel: string(s)}
}

// pass holds what one call of Reconcile has read, and what came of it.
type pass struct {
	page *v1alpha1.MaintPage // from the cache, never changed

	// What there is, from the cache; after the step of each, what its write made of it. One that is not
	// there has no UID.
	pod        corev1.Pod
	deployment appsv1.Deployment
	service    corev1.Service

	taken    []string // the objects of somebody else that have a name we need, such as "Service httpd"
	rejected string   // why the API server refuses an object
	moving   bool     // whether the Service is on its way from one page to the other

	known v1alpha1.MaintPageStatus // the status as it is now
}

// heed returns an error that another try may mend, and notes one that a person has to mend.
func (p *pass) heed(ctx context.Context, err error) error {
	why, retry := kit.Refused(ctx, err)
	p.rejected = cmp.Or(why, p.rejected)
	return retry
}

// stuck tells whether somebody else has to do something.
func (p *pass) stuck() bool { return len(p.taken) > 0 || p.rejected != "" }

// wanted is the page that the spec asks for.
func (p *pass) wanted() site {
	if p.page.Spec.MaintPageConfig.MaintPageToggle {
		return maintenance
	}
	return production
}

// served is the page that our Service sends requests to; neither if somebody has turned it elsewhere, or
// if there is none of ours.
func (p *pass) served() site {
	if !p.mine(&p.service) {
		return ""
	}
	for _, s := range []site{p.wanted(), p.wanted().other()} {
		ours := selectorOf(p.page, s)
		classics := map[string]string{appLabel: ours[appLabel]} // a Service that classic made
		if selector := p.service.Spec.Selector; maps.Equal(selector, ours) || maps.Equal(selector, classics) {
			return s
		}
	}
	return ""
}

// nextSelector returns the selector that the Service should have for now.
func (p *pass) nextSelector() map[string]string {
	want := p.wanted()
	switch {
	case p.answers(want):
		return selectorOf(p.page, want)
	case p.served() != "":
		return p.service.Spec.Selector // stays until the page is Ready
	case p.wasWaiting():
		return selectorOf(p.page, want.other()) // back to where it waited, before somebody interfered
	default:
		return selectorOf(p.page, want) // no page answers, so there is nothing to lose
	}
}

// answers tells whether a page can take requests.
func (p *pass) answers(s site) bool {
	if s == maintenance {
		return p.mine(&p.pod) && podReady(&p.pod)
	}
	return p.mine(&p.deployment) && kit.RolledOut(&p.deployment)
}

// podReady tells whether a Pod is Ready, as it is now: not with an image it had before.
func podReady(pod *corev1.Pod) bool {
	if !pod.DeletionTimestamp.IsZero() || stale(pod.Status.ObservedGeneration, pod.Generation) {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// stale tells whether a kubelet has not seen the Pod of today. One before Kubernetes 1.34 does not say.
func stale(observed, generation int64) bool { return observed != 0 && observed < generation }

// onTheWay are the reasons for a container to wait that pass by themselves and say nothing.
var onTheWay = []string{"", "ContainerCreating", "PodInitializing"}

// whyNot returns what a page that cannot take requests lacks. It counts nothing: that would be news every
// time a pod starts, and be written each time.
func (p *pass) whyNot(s site) string {
	if s == production {
		return fmt.Sprintf("Deployment %s is not rolled out", p.page.Spec.AppConfig.AppName)
	}
	why := fmt.Sprintf("Pod %s is not Ready", podName(p.page))
	for _, status := range p.pod.Status.ContainerStatuses {
		waiting := status.State.Waiting
		if status.Name == containerName && waiting != nil && !slices.Contains(onTheWay, waiting.Reason) {
			return why + ": " + waiting.Reason
		}
	}
	return why
}
