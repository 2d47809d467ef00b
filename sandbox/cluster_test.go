package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestClusterBehaviour checks what a bare API server lacks and everybody expects: each is done by one of Kubernetes'
// own controllers.
func TestClusterBehaviour(t *testing.T) {
	lab := shared.Get(t)
	c := anyClient(t, lab)
	for name, test := range map[string]func(*testing.T, *sandbox.Sandbox, client.Client, string){
		"Deployment":              deploymentMakesPods,
		"StatefulSet":             statefulSetMakesItsFirstPod,
		"DaemonSet":               daemonSetFindsNoNodes,
		"Job":                     jobMakesAPod,
		"CronJob":                 cronJobMakesAJob,
		"Endpoints":               serviceGetsAnEndpointSlice,
		"ServiceAccountToken":     serviceAccountTokenAuthenticates,
		"PersistentVolumeClaim":   claimBindsToVolume,
		"PodDisruptionBudget":     budgetCountsPods,
		"ResourceQuota":           quotaRefusesTheSecond,
		"GarbageCollectionOfNew":  childrenOfANewKindAreCollected,
		"ForegroundAndOrphan":     deletionPropagates,
		"NamespaceDeletion":       namespaceGoesWithItsObjects,
		"AggregatedClusterRole":   clusterRoleAggregates,
		"PodWithoutNodeIsPending": podIsPendingWithAReason,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, lab, c, namespace(t, c))
		})
	}
}

func anyClient(t *testing.T, lab *sandbox.Sandbox) client.Client {
	t.Helper()
	c, err := client.New(lab.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// namespace makes one whose default service account is there, so that Pods can be created in it.
func namespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, c, ns)
	sandboxtest.Eventually(t, "the default service account", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{})
	})
	return ns.Name
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// expectCount waits until a list in a namespace has n items.
func expectCount(t *testing.T, c client.Client, list client.ObjectList, ns string, n int) {
	t.Helper()
	sandboxtest.Eventually(t, fmt.Sprintf("%d in %T", n, list), func(ctx context.Context) error {
		u, err := countOf(ctx, c, list, ns)
		if err == nil && u != n {
			err = fmt.Errorf("there are %d", u)
		}
		return err
	})
}

func countOf(ctx context.Context, c client.Client, list client.ObjectList, ns string) (int, error) {
	if err := c.List(ctx, list, client.InNamespace(ns)); err != nil {
		return 0, err
	}
	return apimeta.LenList(list), nil
}

func meta(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

var labels = map[string]string{"app": "web"}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
}

func selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: labels} }

func deploymentMakesPods(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	deployment := &appsv1.Deployment{ObjectMeta: meta(ns, "web"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)), Selector: selector(), Template: podTemplate(),
	}}
	create(t, c, deployment)
	expectCount(t, c, &appsv1.ReplicaSetList{}, ns, 1)
	expectCount(t, c, &corev1.PodList{}, ns, 2)
	if err := c.Delete(t.Context(), deployment, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	expectCount(t, c, &appsv1.ReplicaSetList{}, ns, 0)
	expectCount(t, c, &corev1.PodList{}, ns, 0)
}

func statefulSetMakesItsFirstPod(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	create(t, c, &appsv1.StatefulSet{ObjectMeta: meta(ns, "db"), Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(3)), Selector: selector(), Template: podTemplate(), ServiceName: "db",
	}})
	sandboxtest.Eventually(t, "pod db-0", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "db-0"}, &corev1.Pod{})
	})
}

func daemonSetFindsNoNodes(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	set := &appsv1.DaemonSet{ObjectMeta: meta(ns, "agent"), Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: podTemplate()}}
	create(t, c, set)
	sandboxtest.Eventually(t, "the DaemonSet's status", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if set.Status.ObservedGeneration != set.Generation {
			return errors.New("not observed yet")
		}
		return nil
	})
}

func jobMakesAPod(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	template := podTemplate()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	create(t, c, &batchv1.Job{ObjectMeta: meta(ns, "once"), Spec: batchv1.JobSpec{Template: template}})
	expectCount(t, c, &corev1.PodList{}, ns, 1)
}

// A schedule of every minute may be a minute away: the lastScheduleTime of the past makes it due at once.
func cronJobMakesAJob(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	template := podTemplate()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.CronJob{ObjectMeta: meta(ns, "often"), Spec: batchv1.CronJobSpec{
		Schedule: "* * * * *", Suspend: new(true), ConcurrencyPolicy: batchv1.ForbidConcurrent, // or there are two after a minute
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}},
	}}
	create(t, c, job)
	job.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-2 * time.Minute)}
	if err := c.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	job.Spec.Suspend = new(false)
	if err := c.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	expectCount(t, c, &batchv1.JobList{}, ns, 1)
}

func clusterRoleAggregates(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-part", Labels: map[string]string{ns: "part"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	whole := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: ns + "-whole"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: part.Labels}}},
	}
	create(t, c, part, whole)
	sandboxtest.Eventually(t, "the rules to be aggregated", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(whole), whole); err != nil {
			return err
		}
		if len(whole.Rules) != 1 {
			return fmt.Errorf("there are %d rules", len(whole.Rules))
		}
		return nil
	})
}

func serviceGetsAnEndpointSlice(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	create(t, c, &corev1.Service{ObjectMeta: meta(ns, "web"), Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}})
	expectCount(t, c, &discoveryv1.EndpointSliceList{}, ns, 1)
}

func serviceAccountTokenAuthenticates(t *testing.T, lab *sandbox.Sandbox, _ client.Client, ns string) {
	request, err := clientset(t, lab).CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := lab.Config()
	config.CertData, config.KeyData, config.BearerToken = nil, nil, request.Status.Token
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	err = c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns))
	if !apierrors.IsForbidden(err) {
		t.Fatalf("a service account without a role lists secrets: %v; want Forbidden", err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + ns + ":default"; review.Status.UserInfo.Username != want {
		t.Errorf("the token is of %q, want %q", review.Status.UserInfo.Username, want)
	}
}

func claimBindsToVolume(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	create(t, c,
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ns,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
		}},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta(ns, "data"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(ns),
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		}},
	)
	sandboxtest.Eventually(t, "the claim to be bound", func(ctx context.Context) error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "data"}, claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("it is %s", claim.Status.Phase)
		}
		return nil
	})
}

func budgetCountsPods(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta(ns, "web"), Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: selector(), MinAvailable: new(intstr.FromInt32(1)),
	}}
	create(t, c, budget)
	sandboxtest.Eventually(t, "the budget's status", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(budget), budget); err != nil {
			return err
		}
		if budget.Status.ObservedGeneration != budget.Generation {
			return errors.New("not observed yet")
		}
		return nil
	})
}

func quotaRefusesTheSecond(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	create(t, c, &corev1.ResourceQuota{ObjectMeta: meta(ns, "few"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/secrets": resource.MustParse("1"), "count/configmaps": resource.MustParse("0")},
	}})
	// Admission asks a watch of its own, which may be behind what the API server answers: that the quota is counted does
	// not say that admission knows it. That it refuses what nobody may have says so, of the whole quota.
	sandboxtest.Eventually(t, "admission to know the quota", func(ctx context.Context) error {
		err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta(ns, "none")}, client.DryRunAll)
		if err == nil {
			return errors.New("a first ConfigMap is admitted")
		}
		if !strings.Contains(err.Error(), "exceeded quota") {
			return err
		}
		return nil
	})
	create(t, c, &corev1.Secret{ObjectMeta: meta(ns, "one")})
	if err := c.Create(t.Context(), &corev1.Secret{ObjectMeta: meta(ns, "two")}); !apierrors.IsForbidden(err) {
		t.Errorf("the second secret: %v; want Forbidden by the quota", err)
	}
}

// things defines a kind of the version v1 of a group.
func things(group string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

func thing(group, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(group + "/v1")
	u.SetKind("Thing")
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func childrenOfANewKindAreCollected(t *testing.T, lab *sandbox.Sandbox, c client.Client, ns string) {
	group := ns + ".example.com"
	if _, err := envtest.InstallCRDs(lab.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{things(group)}, MaxTime: sandboxtest.Patience}); err != nil {
		t.Fatal(err)
	}
	owner, child := thing(group, ns, "owner"), thing(group, ns, "child")
	create(t, c, owner)
	child.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: group + "/v1", Kind: "Thing", Name: "owner", UID: owner.GetUID(), Controller: new(true),
	}})
	config := &corev1.ConfigMap{ObjectMeta: meta(ns, "config")}
	config.OwnerReferences = child.GetOwnerReferences()
	create(t, c, child, config)
	if err := c.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{child, config} {
		sandboxtest.Eventually(t, "the collection of "+o.GetName(), gone(c, o))
	}
}

// gone reports an error as long as an object exists.
func gone(c client.Client, o client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s is still there", o.GetName())
	}
}

func deletionPropagates(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	family := func(name string) (owner, child *corev1.ConfigMap) {
		owner = &corev1.ConfigMap{ObjectMeta: meta(ns, name)}
		create(t, c, owner)
		child = &corev1.ConfigMap{ObjectMeta: meta(ns, name+"-child")}
		child.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true),
		}}
		create(t, c, child)
		return owner, child
	}
	owner, child := family("foreground")
	if err := c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the owner to go after its child", gone(c, owner))
	if err := gone(c, child)(t.Context()); err != nil {
		t.Error("the owner went before its child")
	}
	owner, child = family("orphan")
	if err := c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the owner to go", gone(c, owner))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil || len(child.OwnerReferences) != 0 {
		t.Errorf("the orphan: %v with owners %v; want it to stay without one", err, child.OwnerReferences)
	}
}

func namespaceGoesWithItsObjects(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	for i := range 5 {
		create(t, c, &corev1.ConfigMap{ObjectMeta: meta(ns, fmt.Sprint("config-", i))})
	}
	held := &corev1.ConfigMap{ObjectMeta: meta(ns, "held")}
	held.Finalizers = []string{"example.com/hold"}
	create(t, c, held)
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	expectCount(t, c, &corev1.ConfigMapList{}, ns, 1)
	if err := gone(c, o)(t.Context()); err == nil {
		t.Error("the namespace is gone although an object in it has a finalizer")
	}
	sandboxtest.Eventually(t, "the finalizer to be taken off", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil {
			return err
		}
		held.Finalizers = nil
		return c.Update(ctx, held)
	})
	sandboxtest.Eventually(t, "the namespace to go", gone(c, o))
}

func podIsPendingWithAReason(t *testing.T, _ *sandbox.Sandbox, c client.Client, ns string) {
	pod := &corev1.Pod{ObjectMeta: meta(ns, "lonely"), Spec: podTemplate().Spec}
	create(t, c, pod)
	sandboxtest.Eventually(t, "the scheduler's verdict", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", pod.Status.Conditions)
	})
}

// TestSchemasOnDemand checks that the schemas, which are made at the first request, are served as upstream does.
func TestSchemasOnDemand(t *testing.T) {
	lab := shared.Get(t)
	httpClient, err := rest.HTTPClientFor(lab.Config())
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (*http.Response, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, lab.Config().Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := httpClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, body
	}
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if _, body := get("/openapi/v3"); json.Unmarshal(body, &list) != nil {
		t.Fatalf("%s is no list", body)
	}
	resp, apps := get(list.Paths["apis/apps/v1"].ServerRelativeURL)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Cache-Control") != "public, immutable" || resp.Header.Get("Etag") == "" {
		t.Errorf("%s with %v", resp.Status, resp.Header)
	}
	for _, want := range []string{"io.k8s.api.apps.v1.DeploymentSpec", "/apis/apps/v1/namespaces/{namespace}/deployments"} {
		if !bytes.Contains(apps, []byte(want)) {
			t.Errorf("%s is not in it", want)
		}
	}
	for _, path := range []string{"/openapi/v3/apis/apps/v1", "/openapi/v3/apis/apps/v1?hash=old"} {
		if resp, body := get(path); resp.StatusCode != http.StatusOK || !bytes.Equal(body, apps) {
			t.Errorf("%s: %s with %d bytes; want the same %d", path, resp.Status, len(body), len(apps))
		}
	}
	if resp, _ := get("/openapi/v3/apis/apps/v7"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a version that is not there: %s", resp.Status)
	}
	if resp, body := get("/openapi/v2"); resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("io.k8s.api.apps.v1.DeploymentSpec")) {
		t.Errorf("/openapi/v2: %s with %d bytes", resp.Status, len(body))
	}
}
