package sandbox

import (
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
)

// OLMNamespace is the namespace of the Operator Lifecycle Manager. Subscriptions of all namespaces can use the catalogs in it.
const OLMNamespace = "olm"

//go:embed olm
var olmManifests embed.FS

// olmCRDs returns the CRDs of the Operator Lifecycle Manager.
func olmCRDs() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(), crds.Operator(),
		crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	}
}

// OLMPrograms returns the names of the programs of the Operator Lifecycle Manager. The last one runs only with a catalog of
// [Options].Catalog.
func OLMPrograms() []string {
	return []string{"catalog-operator", "olm-operator", "package-server", "opm", "opm-local"}
}

// OLMOperators returns the names of the programs of the Operator Lifecycle Manager that are operators: a lab can see them.
func OLMOperators() []string { return OLMPrograms()[:2] }

// catalogSource is a catalog in [OLMNamespace].
type catalogSource struct {
	name, title, program string
	port                 int
	args                 []string // of 'opm serve', besides the address and the cache
}

// catalogs returns the catalog of the bundled operators and the user's, if there is one.
func (s *Sandbox) catalogs() []catalogSource {
	all := []catalogSource{{
		name: "operator-lab", title: "Operators of operator-lab", program: "opm", port: s.ports.Bundled,
		args: []string{"--bundled", filepath.Join(s.layout.catalogs(), "bundled")},
	}}
	if s.options.Catalog != "" {
		all = append(all, catalogSource{
			name: "local", title: s.options.Catalog, program: "opm-local", port: s.ports.Catalog, args: []string{s.options.Catalog},
		})
	}
	return all
}

func (c catalogSource) address() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

// object returns the CatalogSource. Its address is that of this machine, where all that use it run.
func (c catalogSource) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
		"metadata": map[string]any{"name": c.name, "namespace": OLMNamespace},
		"spec":     map[string]any{"sourceType": "grpc", "address": c.address(), "displayName": c.title, "publisher": "operator-lab"},
	}}
}

// checkCatalog reports what is wrong with the options about OLM.
func (o *Options) checkCatalog() (err error) {
	if o.Catalog == "" {
		return nil
	}
	if !o.OLM {
		return &Problem{errors.New("a catalog is for OLM, which is not to be started"), "start it too"}
	}
	if o.Catalog, err = filepath.Abs(o.Catalog); err != nil {
		return err
	}
	if info, err := os.Stat(o.Catalog); err != nil || !info.IsDir() {
		return &Problem{fmt.Errorf("the catalog %s is no directory", o.Catalog), "name a directory with a file-based catalog"}
	}
	return nil
}

// startOLM starts the Operator Lifecycle Manager and returns when its catalogs and its package server can be used. lasting ends
// with the sandbox.
func (s *Sandbox) startOLM(ctx, lasting context.Context) error {
	if !s.options.OLM {
		return nil
	}
	c, err := client.New(s.admin, client.Options{})
	if err != nil {
		return err
	}
	objects, err := kit.Objects(olmManifests, "olm")
	if err != nil {
		return err
	}
	for _, source := range s.catalogs() {
		objects = append(objects, source.object())
	}
	for _, o := range objects {
		if err := apply(ctx, c, o); err != nil {
			return err
		}
	}
	programs, err := s.olmPrograms()
	if err != nil {
		return err
	}
	s.programs = slices.Insert(s.programs, len(s.programs)-s.options.Nodes, programs...)
	if err := s.launch(ctx, lasting, programs...); err != nil {
		return err
	}
	if err := s.registerPackages(ctx, c); err != nil {
		return err
	}
	for _, source := range s.catalogs() {
		if err := s.awaitState(ctx, c, source.object(), catalogReady); err != nil {
			return err
		}
	}
	s.step("catalogs", "")
	return nil
}

func apply(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("operator-lab"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// olmPrograms returns the programs that run: all as one service account, as upstream's.
func (s *Sandbox) olmPrograms() ([]*program, error) {
	const credentials, serving, account = "olm-operator", "package-server", "olm-operator-serviceaccount"
	p := s.plane
	if err := p.pki.ensure(
		subject{
			file: credentials, ca: clusterCA, name: "system:serviceaccount:" + OLMNamespace + ":" + account,
			groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + OLMNamespace},
		},
		subject{file: serving, ca: clusterCA, name: serving, hosts: []string{"packageserver-service." + OLMNamespace + ".svc"}},
	); err != nil {
		return nil, err
	}
	var all []*program
	for _, each := range []struct {
		name string
		args []string
	}{
		{"catalog-operator", []string{"--lab=" + LabFile(p.dir)}},
		{"olm-operator", []string{"--lab=" + LabFile(p.dir)}},
		{"package-server", []string{
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.Packages), "--permit-port-sharing",
			"--tls-cert-file=" + p.pki.path(serving+".crt"), "--tls-private-key-file=" + p.pki.path(serving+".key"),
		}},
	} {
		one, err := p.manager(each.name, credentials, each.args)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	for _, source := range s.catalogs() {
		c := &command{path: p.program("opm"), args: slices.Concat([]string{
			"serve", "--address=" + source.address(), "--cache-dir=" + filepath.Join(s.layout.catalogs(), source.program),
		}, source.args)}
		all = append(all, &program{name: source.program, logFile: p.logFile(source.program), launch: c.launch, halt: c.halt})
	}
	return all, nil
}

// managedLabel marks the registration of the package server as the sandbox's.
var managedLabel = client.MatchingLabels{"app.kubernetes.io/managed-by": "operator-lab"}

// forgetPackages removes the registration that an earlier run has left. Discovery fails as long as nobody serves what is
// registered, and with it the deletion of namespaces; and the API server looks again only seconds after it has found nobody.
func (s *Sandbox) forgetPackages(ctx context.Context) error {
	c, err := client.New(s.admin, client.Options{})
	if err != nil {
		return err
	}
	service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}}
	if err := c.DeleteAllOf(ctx, service, managedLabel); err != nil {
		return fmt.Errorf("remove the registration of an earlier package server: %w", err)
	}
	return nil
}

// registerPackages has the API server pass requests for PackageManifests on to the package server, and returns when it
// does.
func (s *Sandbox) registerPackages(ctx context.Context, c client.Client) error {
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.packages.operators.coreos.com"},
		"spec": map[string]any{
			"group": "packages.operators.coreos.com", "version": "v1", "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString(s.plane.pki.caPEM(clusterCA)),
			"service":  map[string]any{"namespace": OLMNamespace, "name": "packageserver-service", "port": int64(s.ports.Packages)},
		},
	}}
	service.SetLabels(managedLabel)
	if err := apply(ctx, c, service); err != nil {
		return err
	}
	return s.awaitState(ctx, c, service, func(o *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(each any) bool {
			condition, _ := each.(map[string]any)
			return condition["type"] == "Available" && condition["status"] == string(metav1.ConditionTrue)
		})
	})
}

// catalogReady says whether the catalog-operator is connected to a catalog.
func catalogReady(o *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(o.Object, "status", "connectionState", "lastObservedState")
	return state == "READY"
}

// awaitState returns when an object is as it is to be, or when the sandbox or ctx ends before.
func (s *Sandbox) awaitState(ctx context.Context, c client.Client, o *unstructured.Unstructured, is func(*unstructured.Unstructured) bool) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	for {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil && is(o) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return s.Err()
		case <-deadline.C:
			return errors.Join(fmt.Errorf("%s %s does not become ready", o.GetKind(), o.GetName()), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
