package project

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/operator-lab/operator-lab/sandbox/certificate"
)

// certManager is the group of cert-manager's kinds.
const certManager = "cert-manager.io"

// hasConversion reports whether an object is a CRD with a conversion webhook.
func hasConversion(o *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook")
	return err == nil && found && isCRD(o)
}

// PointWebhooks returns copies of Plan.Webhooks for a program that serves them on a port of this machine: what names a
// Service names https://127.0.0.1:port instead, with the same path and the authority ca in PEM.
func PointWebhooks(objects []*unstructured.Unstructured, port int, ca []byte) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = o.DeepCopy()
		for _, config := range clientConfigs(out[i]) {
			pointClient(config, port, ca)
		}
	}
	return out
}

// pointClient changes a clientConfig.
func pointClient(config map[string]any, port int, ca []byte) {
	service, ok := config["service"].(map[string]any)
	if !ok {
		return
	}
	path, _ := service["path"].(string)
	if path != "" && path[0] != '/' {
		path = "/" + path
	}
	delete(config, "service")
	config["url"] = fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
	config["caBundle"] = base64.StdEncoding.EncodeToString(ca)
}

// defaultWebhookPort is controller-runtime's.
const defaultWebhookPort = 9443

// webhookPort returns the port on which the program serves its webhooks: that of the container which the Service of the first
// webhook leads to.
func (plan *Plan) webhookPort(all []*unstructured.Unstructured) int {
	for _, o := range plan.Webhooks {
		for _, config := range clientConfigs(o) {
			service, _ := config["service"].(map[string]any)
			name, _ := service["name"].(string)
			port, given := service["port"].(int64)
			if !given {
				port = 443
			}
			for _, o := range all {
				if o.GetKind() != "Service" || o.GetName() != name {
					continue
				}
				var s corev1.Service
				if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s) != nil {
					continue
				}
				for _, p := range s.Spec.Ports {
					if p.Port == int32(port) {
						return plan.containerPort(p)
					}
				}
			}
		}
	}
	return defaultWebhookPort
}

// containerPort returns the port of the container that a port of a Service leads to.
func (plan *Plan) containerPort(p corev1.ServicePort) int {
	if p.TargetPort.Type == intstr.String {
		for _, c := range plan.ports {
			if c.Name == p.TargetPort.StrVal {
				return int(c.ContainerPort)
			}
		}
		return defaultWebhookPort
	}
	return int(cmp.Or(p.TargetPort.IntVal, p.Port))
}

// WebhookServices returns the Services at which the webhooks among the plan's objects are called.
func (plan *Plan) WebhookServices() (all []types.NamespacedName) {
	for _, o := range plan.Objects {
		for _, config := range clientConfigs(o) {
			service, _ := config["service"].(map[string]any)
			name, _ := service["name"].(string)
			namespace, _ := service["namespace"].(string)
			if name != "" {
				all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return all
}

// clientConfigs returns the clientConfigs of a webhook configuration or of a CRD with a conversion webhook.
func clientConfigs(o *unstructured.Unstructured) (all []map[string]any) {
	webhooks, _ := o.Object["webhooks"].([]any)
	for _, w := range webhooks {
		if w, ok := w.(map[string]any); ok {
			if config, ok := w["clientConfig"].(map[string]any); ok {
				all = append(all, config)
			}
		}
	}
	if config, found, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig"); found && err == nil {
		if config, ok := config.(map[string]any); ok {
			all = append(all, config)
		}
	}
	return all
}

// injected is the annotation of objects in which cert-manager puts the authority of the Certificate that it names: namespace/name.
const injected = certManager + "/inject-ca-from"

// issue makes what cert-manager would make of the Certificates among the objects that are read: their Secrets, and the authority in
// the webhooks that name them.
func (plan *Plan) issue(all []*unstructured.Unstructured) error {
	authority, err := certificate.NewAuthority("operator-lab-webhooks-ca")
	if err != nil {
		return err
	}
	issued := map[string]bool{}
	for _, o := range all {
		if o.GetKind() != "Certificate" || o.GroupVersionKind().Group != certManager {
			continue
		}
		secret, _, _ := unstructured.NestedString(o.Object, "spec", "secretName")
		hosts, _, err := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
		if secret == "" || err != nil {
			return problem("cert-manager refuses it, too", "Certificate %s needs a secretName, and dnsNames are texts", o.GetName())
		}
		cert, key, err := authority.Issue(certificate.Subject{Name: o.GetName(), Hosts: hosts})
		if err != nil {
			return err
		}
		data := map[string]any{}
		for name, content := range map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key, "ca.crt": authority.PEM()} {
			data[name] = base64.StdEncoding.EncodeToString(content)
		}
		plan.Objects = append(plan.Objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeTLS), "data": data,
			"metadata": map[string]any{"name": secret, "namespace": o.GetNamespace()},
		}})
		issued[o.GetNamespace()+"/"+o.GetName()] = true
	}
	for _, o := range plan.Objects {
		for _, config := range clientConfigs(o) {
			if issued[o.GetAnnotations()[injected]] {
				config["caBundle"] = base64.StdEncoding.EncodeToString(authority.PEM())
			}
		}
	}
	return nil
}

// MakeCertificates writes tls.crt and tls.key for a server on 127.0.0.1 and localhost to a directory, which it makes if it
// is missing, and ca.crt, the authority for clients, which it also returns.
func MakeCertificates(dir string) (ca []byte, err error) {
	authority, err := certificate.NewAuthority("operator-lab-webhooks-ca")
	if err != nil {
		return nil, err
	}
	cert, key, err := authority.Issue(certificate.Subject{Name: "operator-lab-webhooks", Hosts: []string{"127.0.0.1", "localhost"}})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": authority.PEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return authority.PEM(), nil
}
