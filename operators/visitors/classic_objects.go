package visitors

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"
)

// The names of MySQL's objects are the same for all VisitorsApps of a namespace. The second one gets the database of
// the first, and loses it with the first (V-02).
const (
	classicMySQLName     = "mysql"
	classicMySQLServices = "mysql-service"
	classicSecretName    = "mysql-auth"
)

// The ports of the nodes are fixed, so a cluster has room for one VisitorsApp (V-03).
const (
	backendNodePort  = 30685
	frontendNodePort = 30686
)

func classicMeta(app *v1.VisitorsApp, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: app.Namespace, Name: name}
}

// classicSecret has a user and a password that are in this source (V-08).
func classicSecret(app *v1.VisitorsApp) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: classicMeta(app, classicSecretName),
		StringData: map[string]string{"username": "visitors-user", "password": "visitors-pass"},
	}
}

// fromSecret is a variable with a value of the Secret.
func fromSecret(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: classicSecretName}, Key: key,
	}}}
}

// classicMySQL has its data in no volume: another pod begins with an empty database. Without a probe it is ready as soon
// as its process runs.
func classicMySQL(app *v1.VisitorsApp) *appsv1.Deployment {
	return classicDeployment(app, classicMySQLName, mysqlTier, 1, mysqlImage, mysqlPort,
		corev1.EnvVar{Name: "MYSQL_ROOT_PASSWORD", Value: "password"}, // (V-08)
		corev1.EnvVar{Name: "MYSQL_DATABASE", Value: databaseName},
		fromSecret("MYSQL_USER", "username"),
		fromSecret("MYSQL_PASSWORD", "password"),
	)
}

// classicMySQLService has no address of its own.
func classicMySQLService(app *v1.VisitorsApp) *corev1.Service {
	return &corev1.Service{ObjectMeta: classicMeta(app, classicMySQLServices), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: mysqlPort}}, Selector: labelsOf(app, mysqlTier),
	}}
}

func classicBackend(app *v1.VisitorsApp) *appsv1.Deployment {
	return classicDeployment(app, nameOf(app, backendTier), backendTier, app.Spec.Size, backendImage, backendPort,
		corev1.EnvVar{Name: "MYSQL_DATABASE", Value: databaseName},
		corev1.EnvVar{Name: "MYSQL_SERVICE_HOST", Value: classicMySQLServices},
		fromSecret("MYSQL_USERNAME", "username"),
		fromSecret("MYSQL_PASSWORD", "password"),
	)
}

// classicFrontend has a variable only if there is a title (V-01).
func classicFrontend(app *v1.VisitorsApp) *appsv1.Deployment {
	var env []corev1.EnvVar
	if app.Spec.Title != "" {
		env = append(env, corev1.EnvVar{Name: titleEnv, Value: app.Spec.Title})
	}
	return classicDeployment(app, nameOf(app, frontendTier), frontendTier, 1, frontendImage, frontendPort, env...)
}

func classicDeployment(app *v1.VisitorsApp, name string, t tier, replicas int32, image string, port int32, env ...corev1.EnvVar) *appsv1.Deployment {
	labels := labelsOf(app, t)
	return &appsv1.Deployment{ObjectMeta: classicMeta(app, name), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: appName + "-" + string(t), Image: image, Env: env, Ports: []corev1.ContainerPort{{ContainerPort: port, Name: string(t)}},
			}}},
		},
	}}
}

func classicService(app *v1.VisitorsApp, t tier, port, nodePort int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: classicMeta(app, serviceOf(app, t)), Spec: corev1.ServiceSpec{
		Type:     corev1.ServiceTypeNodePort,
		Selector: labelsOf(app, t),
		Ports:    []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port), NodePort: nodePort}},
	}}
}
