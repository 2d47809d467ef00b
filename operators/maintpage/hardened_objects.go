package maintpage

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// These are the fields of the objects that are ours, and no others: whatever is not named here belongs
// to somebody else, and stays as they want it.

// wantedPod is the Pod of the maintenance page.
func wantedPod(page *v1alpha1.MaintPage) *unstructured.Unstructured {
	image := page.Spec.MaintPageConfig.MaintPageImage
	pod := wanted(page, "v1", "Pod", podName(page), selectorOf(page, maintenance), map[string]any{
		"containers": []any{container(containerName, image)},
	})
	pod.SetAnnotations(map[string]string{ImageAnnotation: image})
	return pod
}

// wantedDeployment is the application. Its pods are labelled with their page as well, its own selector
// is not, since a Deployment that classic made keeps the one it has.
func wantedDeployment(page *v1alpha1.MaintPage) *unstructured.Unstructured {
	app := page.Spec.AppConfig
	served := container(app.AppName, app.AppImage)
	served["imagePullPolicy"] = string(pullPolicy(app.AppImage))
	return wanted(page, "apps/v1", "Deployment", app.AppName, nil, map[string]any{
		"replicas": int64(1),
		"selector": map[string]any{"matchLabels": map[string]any{appLabel: app.AppName}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels(selectorOf(page, production))},
			"spec":     map[string]any{"containers": []any{served}},
		},
	})
}

// wantedService sends requests to the pods of a selector.
func wantedService(page *v1alpha1.MaintPage, selector map[string]string) *unstructured.Unstructured {
	return wanted(page, "v1", "Service", page.Spec.AppConfig.AppName, nil, map[string]any{
		"ports": []any{map[string]any{
			"name": portName, "protocol": "TCP", "port": int64(port), "targetPort": int64(port),
		}},
		"selector": labels(selector),
	})
}

// container has a probe, or Ready would mean no more than that its process was started.
func container(name, image string) map[string]any {
	return map[string]any{
		"name":  name,
		"image": image,
		"readinessProbe": map[string]any{
			"httpGet":       map[string]any{"path": "/", "port": int64(port)},
			"periodSeconds": int64(1), // so soon a page that is asked for is shown
		},
	}
}

// pullPolicy is that of a container which is made with an image, where nobody says another one. A container whose image is changed
// would keep that of the image before.
func pullPolicy(image string) corev1.PullPolicy {
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !strings.Contains(image, "@") && (!tagged || tag == "latest") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func wanted(page *v1alpha1.MaintPage, version, kind, name string, with map[string]string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(page.Namespace)
	u.SetName(name)
	if with != nil {
		u.SetLabels(with)
	}
	u.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(page, v1alpha1.GroupVersion.WithKind(v1alpha1.MaintPageKind)),
	})
	return u
}

// labels are labels as an unstructured object holds them.
func labels(from map[string]string) map[string]any {
	to := make(map[string]any, len(from))
	for key, value := range from {
		to[key] = value
	}
	return to
}
