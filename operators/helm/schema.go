package helm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// specSchema returns the schema of a spec that holds a chart's values, from its values.schema.json. Without one, the spec
// may hold anything.
//
// A custom resource definition takes less than JSON Schema has. What it does not take is left out, so that it refuses no
// values which Helm would take; Helm itself checks them against all of it. Nothing is required, because the chart's
// own values are added to those of an object. Values that the schema does not mention stay, unless it forbids them.
func specSchema(chartSchema []byte) (apiextensionsv1.JSONSchemaProps, error) {
	if len(chartSchema) == 0 {
		return anything("The chart's values; those that are left out are the chart's own."), nil
	}
	var whole map[string]any
	if err := json.Unmarshal(chartSchema, &whole); err != nil {
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("values.schema.json: %w", err)
	}
	spec, err := structural(whole)
	if err != nil {
		return spec, err
	}
	if spec.Type != "object" {
		return anything(spec.Description), nil
	}
	return spec, nil
}

// anything is the schema of an object that may hold anything.
func anything(description string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Description: description, XPreserveUnknownFields: new(true)}
}

// taken are the keywords that are copied as they are; those of an object and an array besides.
var taken = []string{
	"type", "description", "enum", "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "multipleOf",
}

// types are those that a definition has.
var types = []string{"array", "boolean", "integer", "number", "object", "string"}

// unknown are keywords that widen or replace what stands beside them: with one of them a value may be anything.
var unknown = []string{"$ref", "oneOf", "anyOf", "not", "if", "const"}

// structural converts a schema of JSON Schema to one for a custom resource definition.
func structural(s map[string]any) (apiextensionsv1.JSONSchemaProps, error) {
	var out apiextensionsv1.JSONSchemaProps
	kept := map[string]any{}
	for _, key := range taken {
		if value, has := s[key]; has {
			kept[key] = value
		}
	}
	free := false
	for _, key := range unknown {
		if _, has := s[key]; has {
			free = true
		}
	}
	if text, is := s["pattern"].(string); is {
		if _, err := regexp.Compile(text); err != nil {
			delete(kept, "pattern") // JSON Schema has some that Go has not
		}
	}
	if one, _ := s["type"].(string); free || !slices.Contains(types, one) {
		description, _ := s["description"].(string)
		return apiextensionsv1.JSONSchemaProps{Description: description, XPreserveUnknownFields: new(true)}, nil
	}
	raw, err := json.Marshal(kept)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return out, fmt.Errorf("values.schema.json: %w", err)
	}
	switch out.Type {
	case "array":
		items, _ := s["items"].(map[string]any)
		one, err := structural(items)
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &one}
		return out, err
	case "object":
		return out, objectSchema(s, &out)
	}
	return out, nil
}

// objectSchema adds what an object holds.
func objectSchema(s map[string]any, out *apiextensionsv1.JSONSchemaProps) error {
	properties, _ := s["properties"].(map[string]any)
	switch more := s["additionalProperties"].(type) {
	case bool:
		if more || len(properties) == 0 {
			out.XPreserveUnknownFields = new(true)
		}
	case map[string]any:
		if len(properties) > 0 { // a definition takes only one of the two
			out.XPreserveUnknownFields = new(true)
			break
		}
		each, err := structural(more)
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &each}
		return err
	default:
		out.XPreserveUnknownFields = new(true)
	}
	for name, property := range properties {
		p, _ := property.(map[string]any)
		converted, err := structural(p)
		if err != nil {
			return err
		}
		if out.Properties == nil {
			out.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		out.Properties[name] = converted
	}
	return nil
}
