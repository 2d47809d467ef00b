package expression

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Cluster is the type of the value of $client. An [*Invalid] error is permanent.
type Cluster interface {
	// GetObject returns an object. Its errors are the API server's.
	GetObject(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error)
	// ListObjects returns a list of objects; an empty namespace means all.
	ListObjects(ctx context.Context, apiVersion, kind, namespace string) (map[string]any, error)
	// ServesKind reports whether the API server knows a kind.
	ServesKind(ctx context.Context, apiVersion, kind string) (bool, error)
}

var errNotClient = errors.New("the first argument must be $client; it is not there without a cluster")

// clusterOf returns the cluster that is the first argument.
func clusterOf(arguments []any) (Cluster, error) {
	c, ok := arguments[0].(Cluster)
	if !ok {
		return nil, errNotClient
	}
	return c, nil
}

// texts returns all arguments but the first; their types are checked.
func texts(arguments []any) []string {
	out := make([]string, 0, len(arguments))
	for _, a := range arguments[1:] {
		s, _ := a.(string)
		out = append(out, s)
	}
	return out
}

func clusterGet(arguments []any) (any, error) {
	c, err := clusterOf(arguments)
	if err != nil {
		return nil, err
	}
	t := texts(arguments)
	return late(func(ctx context.Context) (any, error) {
		return c.GetObject(ctx, t[0], t[1], t[2], t[3])
	}), nil
}

func clusterExists(arguments []any) (any, error) {
	c, err := clusterOf(arguments)
	if err != nil {
		return nil, err
	}
	t := texts(arguments)
	return late(func(ctx context.Context) (any, error) {
		_, err := c.GetObject(ctx, t[0], t[1], t[2], t[3])
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}), nil
}

func clusterList(arguments []any) (any, error) {
	c, err := clusterOf(arguments)
	if err != nil {
		return nil, err
	}
	t := append(texts(arguments), "")
	return late(func(ctx context.Context) (any, error) {
		return c.ListObjects(ctx, t[0], t[1], t[2])
	}), nil
}

func clusterServes(arguments []any) (any, error) {
	c, err := clusterOf(arguments)
	if err != nil {
		return nil, err
	}
	t := texts(arguments)
	return late(func(ctx context.Context) (any, error) {
		return c.ServesKind(ctx, t[0], t[1])
	}), nil
}

func clusterVersion(arguments []any) (any, error) {
	config, ok := arguments[0].(*rest.Config)
	if !ok || config == nil {
		return nil, errors.New("the argument must be $config; it is not there without a cluster")
	}
	return late(func(ctx context.Context) (any, error) {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		body, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return nil, fmt.Errorf("ask the API server for its version: %w", err)
		}
		var version map[string]any
		if err := json.Unmarshal(body, &version); err != nil {
			return nil, fmt.Errorf("read the API server's version: %w", err)
		}
		return version, nil
	}), nil
}
