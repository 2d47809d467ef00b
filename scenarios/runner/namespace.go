package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// namespacePatience limits the creation of a namespace, for which the format has no timeout.
const namespacePatience = 30 * time.Second

// namespaceOptions describe the namespace of tests.
type namespaceOptions struct {
	name     string
	template any
	compiler *format.Compiler
}

// namespace creates a namespace if it does not exist, registers it with the cleaner, and returns a copy of in with it.
// Without a cluster there is no namespace.
func (s *suite) namespace(ctx context.Context, in inherited, o namespaceOptions, remove *cleaner) (inherited, error) {
	if in.cluster == nil {
		return in, nil
	}
	ns, err := buildNamespace(ctx, in, o)
	if err != nil {
		return in, fmt.Errorf("template of the namespace: %w", err)
	}
	_, err = in.cluster.get(ctx, ns)
	if apierrors.IsNotFound(err) {
		if err = in.cluster.do(ctx, func(c client.Client) error { return c.Create(ctx, ns.DeepCopy()) }); err == nil {
			remove.add(in.cluster, ns)
		}
	}
	if err != nil {
		return in, fmt.Errorf("namespace %s: %w", ns.GetName(), err)
	}
	in.namespace = ns.GetName()
	in.scope = in.scope.With("namespace", in.namespace)
	return in, nil
}

func buildNamespace(ctx context.Context, in inherited, o namespaceOptions) (*unstructured.Unstructured, error) {
	object := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.name}}
	if o.template != nil {
		var err error
		scope := in.scope.WithCompiler(o.compiler).With("namespace", o.name)
		if object, err = scope.Merge(ctx, object, o.template); err != nil {
			return nil, err
		}
	}
	clean, err := decoded(object)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: clean}, nil
}

// freeName returns a name for the namespace of a test: the same one for the same seed, unless a namespace with this
// name exists.
func (s *suite) freeName(ctx context.Context, in inherited, p *planned) (string, error) {
	random := rand.New(rand.NewPCG(uint64(s.Seed), p.seed))
	for {
		name := s.names.next(random)
		if in.cluster == nil {
			return name, nil
		}
		ns := &unstructured.Unstructured{}
		ns.SetAPIVersion("v1")
		ns.SetKind("Namespace")
		ns.SetName(name)
		_, err := in.cluster.get(ctx, ns)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return name, nil
		}
		if err != nil {
			return "", fmt.Errorf("look for a free namespace: %w", err)
		}
	}
}
