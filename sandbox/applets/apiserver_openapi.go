package applets

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// serveSchemas serves the schemas of the built-in kinds at /openapi/v2 and /openapi/v3. They are made at the first request:
// upstream makes them all at the start, which takes a quarter of the API server's CPU time.
func serveSchemas(s *genericapiserver.GenericAPIServer, v2 *common.Config, v3 *common.OpenAPIV3Config) error {
	schemas := cached.Once(cached.Func(func() (*spec.Swagger, string, error) {
		services := restfuladapter.AdaptWebServices(s.Handler.GoRestfulContainer.RegisteredWebServices())
		swagger, err := builder.BuildOpenAPISpecFromRoutes(services, v2)
		if err != nil {
			return nil, "", err
		}
		swagger.Definitions = handler.PruneDefaults(swagger.Definitions)
		return swagger, "built-in", nil // it never changes
	}))
	handler.NewOpenAPIServiceLazy(schemas).RegisterOpenAPIVersionedService("/openapi/v2", s.Handler.NonGoRestfulMux)

	groups := groupSchemas{config: v3, hash: schemaHash(), services: map[string]func() *handler3.OpenAPIService{}}
	return groups.register(s.Handler.GoRestfulContainer, s.Handler.NonGoRestfulMux)
}

// groupSchemas serves the schemas of each version of a group at /openapi/v3.
type groupSchemas struct {
	config *common.OpenAPIV3Config
	// hash is in the URL of each schema; clients keep what they have read of a URL.
	hash string
	// services makes the service of a version of a group, such as apis/apps/v1, at the first call.
	services map[string]func() *handler3.OpenAPIService
}

const schemasPath = "/openapi/v3"

func (g groupSchemas) register(from *restful.Container, to *mux.PathRecorderMux) error {
	paths := map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
	for _, service := range from.RegisteredWebServices() {
		name := strings.TrimPrefix(service.RootPath(), "/")
		g.services[name] = sync.OnceValue(func() *handler3.OpenAPIService {
			one := restful.NewContainer()
			one.Add(service)
			return routes.OpenAPI{V3Config: g.config}.InstallV3(one, mux.NewPathRecorderMux(name))
		})
		at := url.URL{Path: schemasPath + "/" + name, RawQuery: url.Values{"hash": {g.hash}}.Encode()}
		paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: at.String()}
	}
	list, err := json.Marshal(handler3.OpenAPIV3Discovery{Paths: paths})
	if err != nil {
		return err
	}
	to.Handle(schemasPath, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(list)
	}))
	to.HandlePrefix(schemasPath+"/", g)
	return nil
}

// ServeHTTP serves the schemas of one version of a group by upstream's handler. That compares the hash of a request with
// the one of the contents; ours stands for the same contents, and is taken off.
func (g groupSchemas) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, ok := g.services[strings.TrimPrefix(r.URL.Path, schemasPath+"/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if query := r.URL.Query(); query.Get("hash") == g.hash {
		query.Del("hash")
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	service().HandleGroupVersion(w, r)
}

// schemaHash stands for what the schemas depend on: the modules in this binary, and the flags of this process.
func schemaHash() string {
	hash := sha512.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		_, _ = io.WriteString(hash, info.String())
	}
	fmt.Fprintf(hash, "%q", os.Args)
	return strings.ToUpper(hex.EncodeToString(hash.Sum(nil)))
}
