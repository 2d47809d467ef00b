package operatorhost

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operator-lab/operator-lab/operators"
)

// Known remembers what the operators of one cluster were granted, so that the next start of one need not apply it again if nobody has
// touched it. The zero value is ready to be used.
type Known struct {
	// Unchanging says that nobody touches permissions and definitions: neither is looked at again, and all runs share what they know
	// of the cluster's kinds.
	Unchanging bool

	mu     sync.Mutex
	made   map[string][]*unstructured.Unstructured // by operator and variant: as the API server stored them
	mapper meta.RESTMapper                         // nil until the first run, or if runs do not share one
}

// grant applies an operator's namespace, service account, roles and bindings, unless all are as they were left.
func (k *Known) grant(ctx context.Context, config *rest.Config, op operators.Operator, variant string) error {
	of := op.Name + "/" + variant
	k.mu.Lock()
	made := k.made[of]
	k.mu.Unlock()
	if len(made) > 0 && (k.Unchanging || untouched(ctx, config, made)) {
		return nil
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	grants, err := Grants(op, variant)
	if err != nil {
		return err
	}
	for _, o := range grants {
		if err := Apply(ctx, c, o); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made == nil {
		k.made = map[string][]*unstructured.Unstructured{}
	}
	k.made[of] = grants
	return nil
}

// mapperOf returns how a manager gets its mapper of a cluster's kinds; nil: it makes its own.
func (k *Known) mapperOf(cluster Cluster) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	if !k.Unchanging {
		return nil
	}
	return func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.mapper != nil {
			return k.mapper, nil
		}
		config := cluster.Config() // it is not that of a run, which ends
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, err
		}
		k.mapper, err = apiutil.NewDynamicRESTMapper(config, client)
		return k.mapper, err
	}
}

// untouched reports whether all objects are stored in the version that they have. What cannot be read counts as touched.
func untouched(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) bool {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return false
	}
	same := make([]bool, len(objects))
	var all sync.WaitGroup
	for i, o := range objects {
		all.Go(func() {
			resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind()) // right for the kinds of grants
			found, err := c.Resource(resource).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
			same[i] = err == nil && found.UID == o.GetUID() && found.ResourceVersion == o.GetResourceVersion()
		})
	}
	all.Wait()
	return !slices.Contains(same, false)
}
