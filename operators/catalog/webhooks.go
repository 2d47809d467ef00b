package catalog

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// usualPort is the port of a webhook's Service, unless somebody says another.
const usualPort = 443

// webhooks describes the webhooks to OLM, which makes their configurations, Services and certificates.
func (b *builder) webhooks() error {
	for _, u := range b.Objects {
		var err error
		switch u.GetKind() {
		case "ValidatingWebhookConfiguration":
			err = b.admission(u, v1alpha1.ValidatingAdmissionWebhook)
		case "MutatingWebhookConfiguration":
			err = b.admission(u, v1alpha1.MutatingAdmissionWebhook)
		}
		if err != nil {
			return err
		}
	}
	for _, crd := range b.crds {
		c := crd.Spec.Conversion
		if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil || c.Webhook.ClientConfig.Service == nil {
			continue
		}
		none, at := admissionregistrationv1.SideEffectClassNone, c.Webhook.ClientConfig.Service
		if err := b.add(v1alpha1.WebhookDescription{
			GenerateName: "c" + crd.Spec.Names.Plural + "." + crd.Spec.Group, Type: v1alpha1.ConversionWebhook,
			AdmissionReviewVersions: c.Webhook.ConversionReviewVersions, SideEffects: &none,
			WebhookPath: at.Path, ConversionCRDs: []string{crd.Name},
		}, at.Name, at.Port); err != nil {
			return err
		}
	}
	return nil
}

// admission describes the webhooks of a configuration. One of validating webhooks has the fields of the other kind but one.
func (b *builder) admission(u *unstructured.Unstructured, kind v1alpha1.WebhookAdmissionType) error {
	c, err := into[admissionregistrationv1.MutatingWebhookConfiguration](u)
	if err != nil {
		return err
	}
	b.taken[u] = ""
	for _, w := range c.Webhooks {
		at := w.ClientConfig.Service
		if at == nil {
			b.leftOut = append(b.leftOut, LeftOut{u.GetKind(), w.Name, "it is called by address, and OLM calls webhooks in the operator's pods"})
			continue
		}
		if w.NamespaceSelector != nil {
			b.leftOut = append(b.leftOut, LeftOut{"namespaceSelector", w.Name, "OLM has webhooks called for the namespaces of the OperatorGroup"})
		}
		if err := b.add(v1alpha1.WebhookDescription{
			GenerateName: w.Name, Type: kind, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
			AdmissionReviewVersions: w.AdmissionReviewVersions, ReinvocationPolicy: w.ReinvocationPolicy, WebhookPath: at.Path,
		}, at.Name, at.Port); err != nil {
			return err
		}
	}
	return nil
}

// add describes a webhook behind a Service, unless the ClusterServiceVersion has it already.
func (b *builder) add(d v1alpha1.WebhookDescription, service string, port *int32) error {
	d.ContainerPort = usualPort
	if port != nil {
		d.ContainerPort = *port
	}
	if len(b.deployments) > 0 {
		d.DeploymentName = b.deployments[0].Name
	}
	if u := b.find("Service", service); u != nil {
		s, err := into[corev1.Service](u)
		if err != nil {
			return err
		}
		b.taken[u] = servedByOLM
		for _, p := range s.Spec.Ports {
			if p.Port == d.ContainerPort && p.TargetPort != (intstr.IntOrString{}) {
				d.TargetPort = &p.TargetPort
			}
		}
		for _, one := range b.deployments {
			if labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(one.Spec.Template.Labels)) {
				d.DeploymentName = one.Name
			}
		}
	}
	has := func(have v1alpha1.WebhookDescription) bool { return have.GenerateName == d.GenerateName }
	if !slices.ContainsFunc(b.csv.Spec.WebhookDefinitions, has) {
		b.csv.Spec.WebhookDefinitions = append(b.csv.Spec.WebhookDefinitions, d)
	}
	return nil
}
