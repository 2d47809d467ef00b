package visitors_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operator-lab/operator-lab/operators/visitors"
	v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// servers are one API server for the CRD of each variant, since both have the same name.
var servers = map[visitors.Variant]*sandboxtest.Shared[*rest.Config]{
	visitors.Hardened: sandboxtest.ShareAPIServer(func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		return visitors.CRDs(visitors.Hardened)
	}),
	visitors.Classic: sandboxtest.ShareAPIServer(func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		all, err := visitors.CRDs(visitors.Classic)
		chart, chartErr := chartCRD()
		return append(all, chart), errors.Join(err, chartErr)
	}),
}

func TestMain(m *testing.M) {
	os.Exit(sandboxtest.Main(m, servers[visitors.Hardened], servers[visitors.Classic]))
}

// testEnv is a namespace in which an operator runs, without anybody who makes pods of Deployments.
type testEnv struct {
	*sandboxtest.Namespace
	t *testing.T
}

// operate runs a variant as a user who may do what its role says and nothing else.
func operate(t *testing.T, variant visitors.Variant) testEnv {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), visitors.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	env := testEnv{sandboxtest.NewNamespace(t, servers[variant].Get(t), scheme), t}
	cfg := rest.CopyConfig(env.Config)
	cfg.Impersonate.UserName = env.Name + "-operator"
	env.Allow(visitors.Manifests(), "rbac/"+string(variant)+"/role.yaml", cfg.Impersonate.UserName)
	env.Run(cfg, ctrl.Options{}, func(mgr ctrl.Manager) error {
		return visitors.SetupWithManager(mgr, visitors.Options{Variant: variant})
	})
	return env
}

// named is the metadata of an object of the test.
func (env testEnv) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: env.Name, Name: name}
}

// site creates the VisitorsApp ex.
func (env testEnv) site() *v1.VisitorsApp {
	env.t.Helper()
	app := &v1.VisitorsApp{ObjectMeta: env.named("ex"), Spec: v1.VisitorsAppSpec{Size: 2, Title: "A title"}}
	env.MustCreate(app)
	return app
}

// rollOut waits for a Deployment, and says in its status that all its pods are there.
func (env testEnv) rollOut(name string) {
	env.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: env.named(name)}
	sandboxtest.Eventually(env.t, "there is "+name, func() bool { return env.Exists(d) })
	env.MustUpdateStatus(d, func() {
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	})
}

// says waits until the condition Ready has a reason.
func (env testEnv) says(app *v1.VisitorsApp, reason string) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, "the status says "+reason, func() bool {
		env.MustGet(app)
		ready := meta.FindStatusCondition(app.Status.Conditions, v1.ConditionReady)
		return ready != nil && ready.Reason == reason && ready.ObservedGeneration == app.Generation
	})
}

// TestBringUp: each tier is made once the one before it is rolled out, and the status says what is missing.
func TestBringUp(t *testing.T) {
	t.Parallel()
	env := operate(t, visitors.Hardened)
	app := env.site()
	env.says(app, v1.ReasonWaitingForMySQL)
	backend, frontend := &appsv1.Deployment{ObjectMeta: env.named("ex-backend")}, &appsv1.Deployment{ObjectMeta: env.named("ex-frontend")}
	if env.Exists(backend) || env.Exists(frontend) {
		t.Error("there is a backend or a frontend before there is a database")
	}
	env.rollOut("ex-mysql")
	env.says(app, v1.ReasonWaitingForBackend)
	if env.Exists(frontend) || app.Status.BackendImage != "" {
		t.Errorf("there is a frontend before there is a backend, or an image of no pod: %+v", app.Status)
	}
	env.rollOut("ex-backend")
	env.says(app, v1.ReasonWaitingForFrontend)
	env.rollOut("ex-frontend")
	env.says(app, v1.ReasonSiteServed)
	if app.Status.BackendImage != "jdob/visitors-service:1.0.0" || app.Status.FrontendImage != "jdob/visitors-webui:1.0.0" {
		t.Errorf("the images are %+v", app.Status)
	}

	service := &corev1.Service{ObjectMeta: env.named("ex-frontend-service")}
	env.MustGet(service)
	old := service.UID
	env.MustDelete(service)
	sandboxtest.Eventually(t, "the Service is back", func() bool { return env.Exists(service) && service.UID != old })
}

// TestPassword: another password is followed, a missing one made, and one that cannot be used is left alone and told.
func TestPassword(t *testing.T) {
	t.Parallel()
	env := operate(t, visitors.Hardened)
	app := env.site()
	for _, name := range []string{"ex-mysql", "ex-backend", "ex-frontend"} {
		env.rollOut(name)
	}
	env.says(app, v1.ReasonSiteServed)
	secret := &corev1.Secret{ObjectMeta: env.named("ex-mysql-auth")}
	env.MustGet(secret)
	first := string(secret.Data["password"])
	if len(first) < 20 {
		t.Errorf("the password is %q", first)
	}
	env.MustUpdate(secret, func() { secret.Data["password"] = []byte("another") })
	sandboxtest.Eventually(t, "MySQL is told", func() bool {
		env.MustGet(secret)
		return strings.Contains(string(secret.Data["init.sql"]), "IDENTIFIED BY 'another'")
	})
	env.says(app, v1.ReasonWaitingForMySQL)
	env.rollOut("ex-mysql")
	env.says(app, v1.ReasonWaitingForBackend)

	env.MustUpdate(secret, func() { secret.Data["password"] = []byte(`it's`) })
	env.says(app, v1.ReasonRejected)
	if env.MustGet(secret); string(secret.Data["password"]) != `it's` {
		t.Errorf("the password was changed to %q", secret.Data["password"])
	}
	env.MustUpdate(secret, func() { delete(secret.Data, "password") })
	sandboxtest.Eventually(t, "there is a password", func() bool {
		env.MustGet(secret)
		made := string(secret.Data["password"])
		return made != "" && made != first && strings.Contains(string(secret.Data["init.sql"]), made)
	})
}

// TestForeign: what has a name that is needed and belongs to somebody else is left alone, and told.
func TestForeign(t *testing.T) {
	t.Parallel()
	env := operate(t, visitors.Hardened)
	foreign := &corev1.Service{ObjectMeta: env.named("ex-mysql-service"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	env.MustCreate(foreign)
	app := env.site()
	env.says(app, v1.ReasonConflict)
	if env.MustGet(foreign); len(foreign.OwnerReferences) > 0 || foreign.Spec.Ports[0].Port != 1 {
		t.Errorf("it was changed: %+v", foreign)
	}
	env.MustDelete(foreign)
	for _, name := range []string{"ex-mysql", "ex-backend", "ex-frontend"} {
		env.rollOut(name)
	}
	env.says(app, v1.ReasonSiteServed)
}

// TestNames: a name that no Service can have is refused.
func TestNames(t *testing.T) {
	t.Parallel()
	env := operate(t, visitors.Hardened)
	for name, taken := range map[string]bool{strings.Repeat("a", 46): true, strings.Repeat("a", 47): false, "1a": false, "a.b": false} {
		app := &v1.VisitorsApp{ObjectMeta: env.named(name), Spec: v1.VisitorsAppSpec{Size: 1}}
		if err := env.Client.Create(t.Context(), app); (err == nil) != taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}
