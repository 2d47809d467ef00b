package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// resource is an object from a file or from the test.
type resource struct {
	object   map[string]any
	position format.Position
}

// decoded returns an object with the value types of the API machinery, whatever types expressions put into it.
func decoded(object map[string]any) (map[string]any, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("an expression gave what no object can have: %w", err)
	}
	var out map[string]any
	return out, utiljson.Unmarshal(body, &out)
}

// asYAML formats a value as YAML.
func asYAML(value any) string {
	body, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(body)
}

// title returns an object's name as written, before its expressions are evaluated.
func title(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	if u.GetKind() == "" {
		return ""
	}
	return nameOf(&u)
}

// resolve returns an object with its namespace, and its cluster; the error may be a refusal of its kind by the hooks.
func (s *suite) resolve(ctx context.Context, in inherited, object map[string]any) (*cluster, *unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: object}
	if err := s.Hooks.Object(u.GetAPIVersion(), u.GetKind()); err != nil {
		return nil, nil, err
	}
	c, err := in.needCluster()
	if err != nil {
		return nil, nil, err
	}
	if u.GetNamespace() == "" && in.namespace != "" {
		namespaced, err := c.namespaced(ctx, u.GroupVersionKind())
		if err != nil {
			return nil, nil, err
		}
		if namespaced {
			u = shallow(u)
			u.SetNamespace(in.namespace)
		}
	}
	return c, u, nil
}

// shallow copies an object and its metadata only: the rest may contain values that DeepCopy does not support.
func shallow(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if inner, ok := value.(map[string]any); ok && key == "metadata" {
			meta := make(map[string]any, len(inner))
			maps.Copy(meta, inner)
			value = meta
		}
		out[key] = value
	}
	return &unstructured.Unstructured{Object: out}
}

// withGrace sets the termination grace period of an object with pods.
func withGrace(object map[string]any, seconds int64) error {
	if seconds == 0 {
		return nil
	}
	const field = "terminationGracePeriodSeconds"
	switch object["kind"] {
	case "Pod":
		return unstructured.SetNestedField(object, seconds, "spec", field)
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
		return unstructured.SetNestedField(object, seconds, "spec", "template", "spec", field)
	case "CronJob":
		return unstructured.SetNestedField(object, seconds, "spec", "jobTemplate", "spec", "template", "spec", field)
	}
	return nil
}

// load reads the objects of files.
func (t *testRun) load(ctx context.Context, file string, manifest bool) ([]resource, error) {
	l := t.planned.loaded
	all, err := format.LoadResources(ctx, format.ResourceFiles{FS: l.FS, Folder: l.Folder, File: file, Manifest: manifest})
	if err != nil {
		return nil, loadProblem(err)
	}
	out := make([]resource, len(all))
	for i, r := range all {
		out[i] = resource{r.Object, r.Position}
	}
	return out, nil
}

// loadProblem keeps the hint of the first problem of files.
func loadProblem(err error) error {
	var problems format.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		return problemf(problems[0].Hint, "%w", err)
	}
	return err
}
