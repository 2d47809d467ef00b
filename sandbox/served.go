package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// AwaitWatchable returns when resources of a CRD can be watched. The API server sets up their storage at the first
// request, and until that is done answers a watch with 429 and Retry-After: 1, so that an informer that comes at once
// starts a second late.
func AwaitWatchable(ctx context.Context, config *rest.Config, resources ...schema.GroupVersionResource) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, r := range resources {
		url := config.Host + path.Join("/apis", r.Group, r.Version, r.Resource) + "?watch=true&timeoutSeconds=1"
		if err := awaitWatch(ctx, client, url); err != nil {
			return fmt.Errorf("wait until %s can be watched: %w", r.GroupResource(), err)
		}
	}
	return nil
}

func awaitWatch(ctx context.Context, client *http.Client, url string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close() // ends the watch
		if resp.StatusCode != http.StatusTooManyRequests {
			return nil // watchable, or it never will be
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// IsAway reports whether an error says that the API server cannot be reached, or not yet be used.
func IsAway(err error) bool {
	if err == nil {
		return false
	}
	for _, is := range []func(error) bool{
		utilnet.IsConnectionRefused, utilnet.IsConnectionReset, utilnet.IsProbableEOF, utilnet.IsHTTP2ConnectionLost, utilnet.IsTimeout,
		apierrors.IsServiceUnavailable, apierrors.IsServerTimeout, apierrors.IsTimeout, apierrors.IsInternalError, apierrors.IsTooManyRequests,
	} {
		if is(err) {
			return true
		}
	}
	return false
}

// installCRDs installs CRDs, or updates them, and returns when their resources are served and can be watched.
func (p *plane) installCRDs(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	config, err := p.config("admin")
	if err != nil {
		return err
	}
	return InstallCRDs(ctx, config, crds...)
}

// InstallCRDs installs CRDs, or updates them, and returns when their resources are served and can be watched. The
// configuration must be an administrator's.
func InstallCRDs(ctx context.Context, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if len(crds) == 0 {
		return nil
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds, PollInterval: 10 * time.Millisecond, MaxTime: startTimeout}); err != nil {
		return err
	}
	var resources []schema.GroupVersionResource
	for _, crd := range crds {
		resources = append(resources, resourcesOf(crd)...)
	}
	return AwaitWatchable(ctx, config, resources...)
}

// settlingTime is how long an API server takes a new kind for one that other servers may not know yet. It counts from the
// second in which the definition was established, and delays each creation by as much.
const settlingTime = 2 * time.Second

// awaitSettled returns when no custom resource is so new that the API server delays its creation. Waiting for the rest of
// the time is shorter than the delay.
func (p *plane) awaitSettled(ctx context.Context) error {
	config, err := p.config("admin")
	if err != nil {
		return err
	}
	crds, err := definitions(ctx, config)
	if err != nil {
		return err
	}
	var settled time.Time
	for i := range crds {
		established := apihelpers.FindCRDCondition(&crds[i], apiextensionsv1.Established)
		if established == nil {
			continue
		}
		if t := established.LastTransitionTime.Add(settlingTime); t.After(settled) {
			settled = t
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(settled)):
		return nil
	}
}

// definitions lists all CRDs.
func definitions(ctx context.Context, config *rest.Config) ([]apiextensionsv1.CustomResourceDefinition, error) {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	crds, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the custom resource definitions: %w", err)
	}
	return crds.Items, nil
}

// definedPatience limits the wait for the API server to serve the kinds whose definitions it has. It never serves a
// kind whose names another kind has, whatever the status of its definition says.
const definedPatience = 10 * time.Second

// AwaitDefined returns when discovery lists all kinds whose definitions are established. An API server that has just
// started is ready before that, and clients that ask for such a kind, as kubectl and operators do, get the answer that
// it does not exist. Kinds that are not listed after ten seconds are no error: the API server serves no kind whose
// names another kind has. The configuration must be an administrator's.
func AwaitDefined(ctx context.Context, config *rest.Config) error {
	crds, err := definitions(ctx, config)
	if err != nil {
		return err
	}
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, definedPatience)
	defer cancel()
	missing := served(crds)
	for {
		missing = unknown(known, missing)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-limited.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// unknown returns those of the resources that discovery does not list, or all if it does not answer.
func unknown(known discovery.AggregatedDiscoveryInterface, resources []schema.GroupVersionResource) []schema.GroupVersionResource {
	if len(resources) == 0 {
		return nil
	}
	_, found, _, err := known.GroupsAndMaybeResources()
	if err != nil {
		return resources
	}
	return slices.DeleteFunc(resources, func(r schema.GroupVersionResource) bool {
		list := found[r.GroupVersion()]
		return list != nil && slices.ContainsFunc(list.APIResources, func(each metav1.APIResource) bool { return each.Name == r.Resource })
	})
}

// served returns the resources of established definitions.
func served(crds []apiextensionsv1.CustomResourceDefinition) (all []schema.GroupVersionResource) {
	for i := range crds {
		if apihelpers.IsCRDConditionTrue(&crds[i], apiextensionsv1.Established) {
			all = append(all, resourcesOf(&crds[i])...)
		}
	}
	return all
}

// resourcesOf returns the resources of a definition, one for each served version.
func resourcesOf(crd *apiextensionsv1.CustomResourceDefinition) (all []schema.GroupVersionResource) {
	for _, version := range crd.Spec.Versions {
		if version.Served {
			all = append(all, schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural})
		}
	}
	return all
}

// install installs what a sandbox needs in the cluster.
func (s *Sandbox) install(ctx context.Context) error {
	return errors.Join(s.forgetPackages(ctx), s.plane.installCRDs(ctx, s.options.CRDs), s.plane.installStorage(ctx))
}

// installEarly does so as soon as an API server can be used that starts for the first time, a second before its hooks have run.
func (s *Sandbox) installEarly(ctx context.Context) error {
	if err := s.plane.awaitPaths(ctx); err != nil {
		return err
	}
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.install(ctx)
		if !IsAway(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return s.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// awaitUsable waits until the default namespace has its service account, without which no Pod can be created, until the
// API server has its own Service, and until all custom resources are served. An API server that dies meanwhile, as by a
// fault, is waited for as when it starts.
func (s *Sandbox) awaitUsable(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(startTimeout)
	for {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			_, err = client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
		}
		if err == nil {
			err = AwaitDefined(ctx, s.admin)
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) && (!IsAway(err) || time.Now().After(deadline)) {
			return fmt.Errorf("look for the default service account, the API server's Service and the custom resources: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return s.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
