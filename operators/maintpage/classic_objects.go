package maintpage

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// newPod is a bare Pod: nothing brings it back but the operator (M-07). It has no probe, so it is Ready
// once its process runs, whether it answers or not (M-02).
func newPod(page *v1alpha1.MaintPage) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: page.Namespace,
			Name:      podName(page),
			Labels:    map[string]string{appLabel: page.Name},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: containerName, Image: page.Spec.MaintPageConfig.MaintPageImage},
		}},
	}
}

// newDeployment goes by the name of the application, so with another name there is another Deployment
// and another Service, and nobody deletes the old ones (M-05).
func (r *classic) newDeployment(page *v1alpha1.MaintPage) *appsv1.Deployment {
	app := page.Spec.AppConfig
	labels := map[string]string{appLabel: app.AppName}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: page.Namespace, Name: app.AppName},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: app.AppName, Image: app.AppImage}}},
			},
		},
	}
	_ = ctrl.SetControllerReference(page, deployment, r.client.Scheme()) // the error is dropped (M-14)
	return deployment
}

func (r *classic) newService(page *v1alpha1.MaintPage) *corev1.Service {
	app := page.Spec.AppConfig
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: page.Namespace, Name: app.AppName},
		Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{
				{Name: portName, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)},
			},
			Selector: map[string]string{appLabel: app.AppName},
		},
	}
	_ = ctrl.SetControllerReference(page, service, r.client.Scheme()) // the error is dropped (M-14)
	return service
}
