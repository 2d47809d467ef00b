package operatorhost

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
)

// Granted remembers which permissions operators of one cluster were granted, so that the next start of one need not apply them again
// if nobody has touched them. The zero value is ready to be used.
type Granted struct {
	mu   sync.Mutex
	made map[string][]*unstructured.Unstructured // by operator and variant: as the API server stored them
}

// grant applies an operator's namespace, service account, roles and bindings, unless all are as they were left.
func (g *Granted) grant(ctx context.Context, config *rest.Config, op operators.Operator, variant string) error {
	of := op.Name + "/" + variant
	g.mu.Lock()
	made := g.made[of]
	g.mu.Unlock()
	if len(made) > 0 && untouched(ctx, config, made) {
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
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made == nil {
		g.made = map[string][]*unstructured.Unstructured{}
	}
	g.made[of] = grants
	return nil
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
