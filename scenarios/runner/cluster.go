package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operator-lab/operator-lab/scenarios/expression"
)

// UserAgent is the default user agent of requests that belong to tests; the configuration may name another.
const UserAgent = "operator-lab-test"

// cluster is a cluster that tests use. It caches the kinds it discovers until one is not found.
type cluster struct {
	// load returns the cluster's config. It is called when first needed, because a script of the test may have to
	// create the cluster.
	load func() (*rest.Config, error)
	// file is the cluster's kubeconfig; if empty, one is generated from the config.
	file string
	// allows returns an error for kinds that must not be used.
	allows func(apiVersion, kind string) error

	mu     sync.Mutex
	config *rest.Config
	http   *http.Client
	client client.Client
	mapper meta.RESTMapper
}

// clusterFromConfig returns a cluster with a known config.
func (s *suite) clusterFromConfig(config *rest.Config, file string) *cluster {
	return &cluster{load: func() (*rest.Config, error) { return config, nil }, file: file, allows: s.Hooks.Object}
}

// clusterFromFile returns the cluster of a context in a kubeconfig.
func clusterFromFile(path, context string, allows func(apiVersion, kind string) error) *cluster {
	return &cluster{allows: allows, load: func() (*rest.Config, error) {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
		overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
		}
		return config, nil
	}}
}

// rest returns the cluster's config.
func (c *cluster) rest() (*rest.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restLocked()
}

func (c *cluster) restLocked() (*rest.Config, error) {
	if c.config != nil {
		return c.config, nil
	}
	config, err := c.load()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // no limit: the tests of a run are few, and their API server is their own
	if config.UserAgent == "" {
		config.UserAgent = UserAgent
	}
	config.WarningHandler = rest.NoWarnings{} // they would be printed to the terminal
	c.config = config
	return config, nil
}

// connected returns a client and its mapper of kinds.
func (c *cluster) connected() (client.Client, meta.RESTMapper, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, c.mapper, nil
	}
	config, err := c.restLocked()
	if err != nil {
		return nil, nil, err
	}
	if c.http == nil {
		if c.http, err = rest.HTTPClientFor(config); err != nil {
			return nil, nil, err
		}
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, c.http)
	if err != nil {
		return nil, nil, err
	}
	plain, err := client.New(config, client.Options{HTTPClient: c.http, Mapper: mapper})
	if err != nil {
		return nil, nil, err
	}
	c.client, c.mapper = client.WithFieldValidation(plain, metav1.FieldValidationStrict), mapper
	return c.client, c.mapper, nil
}

// forget drops the client and its mapper, unless they were replaced already.
func (c *cluster) forget(used client.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == used {
		c.client, c.mapper = nil, nil
	}
}

// do calls a function with the client. While the API server refuses connections, as during a restart, it tries again
// until ctx ends.
//
// If the API server does not know the path of the kind, the kind's definition has changed or is gone: then do discovers
// the kinds again. For a kind that is gone the error is that its object is not found.
func (c *cluster) do(ctx context.Context, use func(client.Client) error) error {
	var last error
	err := poll(ctx, func(context.Context) (bool, error) {
		last = c.once(use)
		return !utilnet.IsConnectionRefused(last), nil
	})
	if last == nil {
		return err
	}
	return last
}

func (c *cluster) once(use func(client.Client) error) error {
	first, _, err := c.connected()
	if err != nil {
		return err
	}
	err = use(first)
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return err
	}
	c.forget(first)
	second, _, problem := c.connected()
	if problem != nil {
		return err
	}
	if again := use(second); !meta.IsNoMatchError(again) {
		return again
	}
	return err
}

// newKindPatience is how long to wait for an unknown kind: its CRD may just have been created.
const newKindPatience = 3 * time.Second

// mapping returns the REST mapping of a kind.
func (c *cluster) mapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	ctx, cancel := context.WithTimeout(ctx, newKindPatience)
	defer cancel()
	var found *meta.RESTMapping
	var last error
	err := poll(ctx, func(context.Context) (bool, error) {
		_, mapper, err := c.connected()
		if err != nil {
			return false, err
		}
		found, last = mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		return last == nil, nil
	})
	switch {
	case meta.IsNoMatchError(last):
		return nil, problemf("see 'kubectl api-resources' for the kinds there are; is its CRD installed?",
			"the API server knows no kind %s in %s: %w", gvk.Kind, gvk.GroupVersion(), last)
	case last != nil:
		return nil, last
	}
	return found, err
}

func (c *cluster) namespaced(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	m, err := c.mapping(ctx, gvk)
	if err != nil {
		return false, err
	}
	return m.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// get reads the object with the kind, namespace and name of another.
func (c *cluster) get(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := c.do(ctx, func(cl client.Client) error {
		out = &unstructured.Unstructured{}
		out.SetGroupVersionKind(like.GroupVersionKind())
		return cl.Get(ctx, client.ObjectKeyFromObject(like), out)
	})
	return out, err
}

// GetObject implements [expression.Cluster].
func (c *cluster) GetObject(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
	if err := c.allows(apiVersion, kind); err != nil {
		return nil, &expression.Invalid{Err: err}
	}
	like := &unstructured.Unstructured{}
	like.SetAPIVersion(apiVersion)
	like.SetKind(kind)
	like.SetNamespace(namespace)
	like.SetName(name)
	out, err := c.get(ctx, like)
	if err != nil {
		return nil, err
	}
	return out.Object, nil
}

// ListObjects implements [expression.Cluster].
func (c *cluster) ListObjects(ctx context.Context, apiVersion, kind, namespace string) (map[string]any, error) {
	if err := c.allows(apiVersion, kind); err != nil {
		return nil, &expression.Invalid{Err: err}
	}
	var out *unstructured.UnstructuredList
	err := c.do(ctx, func(cl client.Client) error {
		out = &unstructured.UnstructuredList{}
		out.SetAPIVersion(apiVersion)
		out.SetKind(kind)
		return cl.List(ctx, out, client.InNamespace(namespace))
	})
	if err != nil {
		return nil, err
	}
	return out.UnstructuredContent(), nil
}

// ServesKind implements [expression.Cluster].
func (c *cluster) ServesKind(_ context.Context, apiVersion, kind string) (bool, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return false, err
	}
	_, mapper, err := c.connected()
	if err != nil {
		return false, err
	}
	_, err = mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: kind}, gv.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// kubeconfig returns a kubeconfig of the cluster for programs. Its paths are absolute, so it may be stored anywhere.
func (c *cluster) kubeconfig() ([]byte, error) {
	config, err := c.rest()
	if err != nil {
		return nil, err
	}
	if c.file != "" {
		k, err := clientcmd.LoadFromFile(c.file)
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig %s: %w", c.file, err)
		}
		if err := clientcmd.ResolveLocalPaths(k); err != nil {
			return nil, err
		}
		return clientcmd.Write(*k)
	}
	return kubeconfigOf(config)
}

// kubeconfigOf converts a client config to a kubeconfig.
func kubeconfigOf(config *rest.Config) ([]byte, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	if config.WrapTransport != nil && config.CAData == nil && config.BearerToken == "" && config.CertData == nil {
		return nil, errors.New("this cluster is reached in a way that no kubeconfig can say")
	}
	const name = "test"
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure,
		TLSServerName: config.ServerName,
	}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile, Username: config.Username, Password: config.Password,
		Impersonate: config.Impersonate.UserName, ImpersonateUID: config.Impersonate.UID,
		ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
		AuthProvider: config.AuthProvider, Exec: config.ExecProvider,
	}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.CurrentContext = name
	return clientcmd.Write(*k)
}
