package labapi

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/storage/names"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/labapi/openapi"
)

// api is the HTTP handler of the group.
type api struct {
	http.Handler
	memories []*memory
}

// access authenticates and authorizes clients.
type access struct {
	authenticator.Request
	authorizer.Authorizer
}

// newAPI builds the group on upstream's generic API server. That server is neither started nor does it listen: this
// would only add handlers and loops for a standalone API server, and a delay at its end.
func newAPI(b Backend, who access, address string) (*api, error) {
	scheme, published, err := schemes()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	config := genericapiserver.NewConfig(codecs)
	config.ExternalAddress = address
	config.LoopbackClientConfig = &restclient.Config{} // required, but used by hooks only
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.36", "", "")
	config.Authentication.Authenticator, config.Authorization.Authorizer = who.Request, who.Authorizer
	config.BuildHandlerChainFunc = chain
	config.EnableIndex, config.EnableProfiling, config.EnableMetrics = false, false, false
	describe(config, apiopenapi.NewDefinitionNamer(published))
	server, err := config.Complete(nil).New("operator-lab", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupVersion.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	storages, memories, err := storages(b, scheme, codecs.LegacyCodec(v1alpha1.GroupVersion))
	if err != nil {
		return nil, err
	}
	group.VersionedResourcesStorageMap[v1alpha1.GroupVersion.Version] = storages
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, err
	}
	server.PrepareRun()
	return &api{server.Handler, memories}, nil
}

// describe publishes the schemas in both forms: without the older one kube-apiserver logs a complaint every minute.
func describe(config *genericapiserver.Config, names *apiopenapi.DefinitionNamer) {
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.Definitions, names)
	config.OpenAPIConfig.Info.Title = "operator-lab"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.Definitions, names)
	config.OpenAPIV3Config.Info.Title = "operator-lab"
}

// schemes returns two schemes with the types: the first has them also as the internal version into which requests are
// decoded (here the same types), the other one only as clients see them.
func schemes() (scheme, published *runtime.Scheme, err error) {
	scheme, published = runtime.NewScheme(), runtime.NewScheme()
	core := schema.GroupVersion{Version: "v1"}
	for _, s := range []*runtime.Scheme{scheme, published} {
		if err := v1alpha1.AddToScheme(s); err != nil {
			return nil, nil, err
		}
		metav1.AddToGroupVersion(s, core)
		s.AddUnversionedTypes(core,
			&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: v1alpha1.GroupVersion.Group, Version: runtime.APIVersionInternal},
		&v1alpha1.Operator{}, &v1alpha1.OperatorList{},
		&v1alpha1.Loop{}, &v1alpha1.LoopList{},
		&v1alpha1.Fault{}, &v1alpha1.FaultList{},
	)
	if err := scheme.SetVersionPriority(v1alpha1.GroupVersion); err != nil {
		return nil, nil, err
	}
	return scheme, published, scheme.AddFieldLabelConversionFunc(v1alpha1.GroupVersion.WithKind("Loop"), loopField)
}

// storages returns the storages of the three resources.
func storages(b Backend, scheme *runtime.Scheme, codec runtime.Codec) (map[string]rest.Storage, []*memory, error) {
	common := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator}
	inNamespace := common
	inNamespace.namespaced = true
	served := map[string]rest.Storage{}
	var memories []*memory
	for _, r := range []resource{{
		plural: "operators", singular: "operator", origin: operators{common, b}, columns: operatorColumns(),
		fresh: func() runtime.Object { return &v1alpha1.Operator{} },
		list:  func() runtime.Object { return &v1alpha1.OperatorList{} },
	}, {
		plural: "faults", singular: "fault", origin: faults{common, b}, columns: faultColumns(),
		fresh: func() runtime.Object { return &v1alpha1.Fault{} },
		list:  func() runtime.Object { return &v1alpha1.FaultList{} },
	}, {
		plural: "loops", singular: "loop", origin: loops{inNamespace, b}, columns: loopColumns(), attributes: loopAttributes,
		fresh: func() runtime.Object { return &v1alpha1.Loop{} },
		list:  func() runtime.Object { return &v1alpha1.LoopList{} },
	}} {
		s, m, err := r.store(codec)
		if err != nil {
			return nil, nil, fmt.Errorf("make the store of %s: %w", r.plural, err)
		}
		memories = append(memories, m)
		served[r.plural] = readWrite{inLab{}, s}
		if r.plural == "loops" {
			served[r.plural] = newReadOnly(s)
		}
	}
	served[v1alpha1.OperatorMetrics] = operatorMetrics{b}
	return served, memories, nil
}

// chain wraps the handler with the part of upstream's filters that is needed behind a kube-apiserver, which has
// limited, logged and audited the request already.
func chain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	handler = filters.WithAuthorization(handler, c.Authorization.Authorizer, c.Serializer)
	handler = filters.WithAuthentication(handler, c.Authentication.Authenticator, filters.Unauthorized(c.Serializer), nil, nil)
	handler = filters.WithWarningRecorder(handler)
	handler = filters.WithCacheControl(handler)
	handler = filters.WithRequestInfo(handler, c.RequestInfoResolver)
	handler = serverfilters.WithPanicRecovery(handler, c.RequestInfoResolver)
	return filters.WithAuditInit(handler)
}

// follow serves watches until ctx ends.
func (a *api) follow(ctx context.Context, spawn func(func())) {
	for _, m := range a.memories {
		spawn(func() { m.follow(ctx) })
	}
}
