package trace

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// KubectlKind returns the kind as kubectl takes it: in lower case, with the group of all but the core.
func (r Ref) KubectlKind() string {
	kind := strings.ToLower(r.Kind)
	if group, _, has := strings.Cut(r.APIVersion, "/"); has {
		kind += "." + group
	}
	return kind
}

// KubectlNamespace returns the flag for the namespace, with a space before it; empty if kubectl needs none.
func (r Ref) KubectlNamespace() string {
	if r.Namespace == "" || r.Namespace == "default" {
		return ""
	}
	return " -n " + r.Namespace
}

// Kubectl returns the kubectl command that does what a person or the demo did by an event; empty if it is none of these, or
// there is no such command.
func Kubectl(e *Event) string {
	if e.Actor != person && e.Actor != Demo || e.Kind != KindCall || !e.IsWrite() {
		return ""
	}
	of := " " + e.Object.KubectlKind() + " " + e.Object.Name + e.Object.KubectlNamespace()
	if e.Object.Subresource != "" {
		of += " --subresource " + e.Object.Subresource
	}
	switch e.Verb {
	case VerbDelete:
		return "kubectl delete" + of
	case VerbCreate, VerbApply:
		var o map[string]any
		if json.Unmarshal(e.After, &o) != nil {
			return ""
		}
		shown := map[string]any{"apiVersion": e.Object.APIVersion, "kind": e.Object.Kind}
		meta := map[string]any{"name": e.Object.Name}
		if e.Object.Namespace != "" {
			meta["namespace"] = e.Object.Namespace
		}
		shown["metadata"] = meta
		for _, field := range []string{"spec", "data"} {
			if o[field] != nil {
				shown[field] = o[field]
			}
		}
		return "echo " + quoted(shown) + " | kubectl " + e.Verb + " -f -"
	case VerbUpdate, VerbPatch:
		var before, after map[string]any
		if json.Unmarshal(e.Before, &before) != nil || json.Unmarshal(e.After, &after) != nil {
			return "kubectl edit" + of
		}
		return "kubectl patch" + of + " --type merge -p " + quoted(mergePatch(wanted(before), wanted(after)))
	}
	return ""
}

func quoted(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "''"
	}
	return "'" + strings.ReplaceAll(string(raw), "'", `'\''`) + "'"
}

// wanted returns an object without what the API server sets by itself, and without its status.
func wanted(o map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, o)
	delete(out, "status")
	meta, _ := o["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if meta[name] != nil {
			kept[name] = meta[name]
		}
	}
	out["metadata"] = kept
	return out
}

// mergePatch returns the JSON merge patch that makes one object of another.
func mergePatch(before, after map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range after {
		old, has := before[name]
		below, is := v.(map[string]any)
		was, were := old.(map[string]any)
		switch {
		case has && reflect.DeepEqual(old, v):
		case is && were:
			out[name] = mergePatch(was, below)
		default:
			out[name] = v
		}
	}
	for name := range before {
		if _, has := after[name]; !has {
			out[name] = nil
		}
	}
	return out
}
