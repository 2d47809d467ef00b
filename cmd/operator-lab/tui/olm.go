package tui

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// isOLM reports whether an object is there and of a kind of OLM's.
func isOLM(o *trace.Object, kind string) bool {
	return o != nil && o.Ref.Kind == kind && strings.HasPrefix(o.Ref.APIVersion, "operators.coreos.com/")
}

// packageOf returns the name of the package that a Subscription of OLM is to; empty if it is none.
func packageOf(o *trace.Object) string {
	var subscription struct{ Spec struct{ Name string } }
	if !isOLM(o, "Subscription") || json.Unmarshal(o.Raw, &subscription) != nil {
		return ""
	}
	return subscription.Spec.Name
}

// example is an object that can be created.
type example struct {
	ref  trace.Ref
	text []byte // as YAML
}

// examplesOf returns the examples of a ClusterServiceVersion, one of each kind that its operator serves. Those without a namespace
// get one that the operator watches.
func examplesOf(o *trace.Object) []example {
	var version struct {
		Metadata struct{ Annotations map[string]string }
	}
	var all []map[string]any
	if !isOLM(o, "ClusterServiceVersion") || o.Deleted || json.Unmarshal(o.Raw, &version) != nil {
		return nil
	}
	annotations := version.Metadata.Annotations
	if json.Unmarshal([]byte(annotations["alm-examples"]), &all) != nil {
		return nil
	}
	watched, _, _ := strings.Cut(annotations["olm.targetNamespaces"], ",") // empty: all
	var out []example
	for _, object := range all {
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			continue
		}
		of := func(from map[string]any, key string) string {
			value, _ := from[key].(string)
			return value
		}
		metadata["namespace"] = cmp.Or(of(metadata, "namespace"), watched, "default")
		raw, err := json.Marshal(object)
		if err != nil {
			continue
		}
		out = append(out, example{
			trace.Ref{APIVersion: of(object, "apiVersion"), Kind: of(object, "kind"), Namespace: of(metadata, "namespace"), Name: of(metadata, "name")},
			[]byte(strings.Join(yamlLines(raw), "\n") + "\n"),
		})
	}
	return out
}
