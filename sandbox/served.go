package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds, PollInterval: 10 * time.Millisecond}); err != nil {
		return err
	}
	var served []schema.GroupVersionResource
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if version.Served {
				served = append(served, schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural})
			}
		}
	}
	return AwaitWatchable(ctx, config, served...)
}
