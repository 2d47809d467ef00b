package expression

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/jmespath-community/go-jmespath/pkg/functions"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/kyverno/kyverno-json/pkg/jp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// late is returned by a function that needs the context of the evaluation: it does the rest of the work.
type late func(context.Context) (any, error)

// table has all functions of JMESPath by name.
type table struct {
	interpreter.FunctionCaller
	names map[string]bool
}

var allFunctions = sync.OnceValue(func() table {
	all := append(jp.GetFunctions(context.Background()), chainsawFunctions()...) // its functions do not use the context
	names := make(map[string]bool, len(all))
	for _, f := range all {
		names[f.Name] = true
	}
	return table{interpreter.NewFunctionCaller(all...), names}
})

// Functions returns the sorted names of all functions of JMESPath.
func Functions() []string {
	return slices.Sorted(maps.Keys(allFunctions().names))
}

// caller calls functions for one evaluation.
type caller struct{ of *evaluation }

// CallFunction calls a function by its name.
func (c caller) CallFunction(name string, arguments []any) (any, error) {
	if err := c.of.tick(); err != nil {
		return nil, err
	}
	all := allFunctions()
	if !all.names[name] {
		return nil, c.of.wrong(unknownFunction(name, all.names))
	}
	if err := checkPadding(name, arguments); err != nil {
		return nil, err
	}
	if name == "sort_by" && len(arguments) > 0 { // it sorts the list that it is given
		if list, ok := arguments[0].([]any); ok {
			arguments[0] = slices.Clone(list)
		}
	}
	out, err := all.CallFunction(name, arguments)
	if rest, ok := out.(late); ok && err == nil {
		out, err = rest(c.of.ctx)
		if invalid := new(Invalid); errors.As(err, &invalid) {
			return nil, c.of.wrong(err)
		}
	}
	if text, ok := out.(string); ok && len(text) > longestText {
		return nil, fmt.Errorf("%s returned a text of %d bytes; the limit is %d", name, len(text), longestText)
	}
	return out, err
}

func unknownFunction(name string, names map[string]bool) error {
	if names["x_"+name] {
		return fmt.Errorf("unknown function: %s; it is called x_%s", name, name)
	}
	return fmt.Errorf("unknown function: %s", name)
}

// checkPadding limits the width of padding, because the result would be too long before its length could be checked.
func checkPadding(name string, arguments []any) error {
	if (name == "pad_left" || name == "pad_right") && len(arguments) > 1 {
		if width, ok := arguments[1].(float64); ok && width > longestText {
			return fmt.Errorf("%s to a width of %.0f; the limit is %d", name, width, longestText)
		}
	}
	return nil
}

func takes(types ...functions.JpType) []functions.ArgSpec {
	specs := make([]functions.ArgSpec, len(types))
	for i, t := range types {
		specs[i] = functions.ArgSpec{Types: []functions.JpType{t}}
	}
	return specs
}

const (
	anything = functions.JpAny
	text     = functions.JpString
)

// chainsawFunctions returns the functions that Chainsaw adds to kyverno-json's. The names of experimental ones begin
// with x_.
func chainsawFunctions() []functions.FunctionEntry {
	listed := takes(anything, text, text, text)
	listed[3].Optional = true
	return []functions.FunctionEntry{
		{Name: "env", Arguments: takes(text), Handler: func(a []any) (any, error) { return os.Getenv(a[0].(string)), nil }},
		{Name: "trim_space", Arguments: takes(text), Handler: func(a []any) (any, error) { return strings.TrimSpace(a[0].(string)), nil }},
		{Name: "as_string", Arguments: takes(anything), Handler: asString},
		{Name: "x_k8s_get", Arguments: takes(anything, text, text, text, text), Handler: clusterGet},
		{Name: "x_k8s_list", Arguments: listed, Handler: clusterList},
		{Name: "x_k8s_exists", Arguments: takes(anything, text, text, text, text), Handler: clusterExists},
		{Name: "x_k8s_resource_exists", Arguments: takes(anything, text, text), Handler: clusterServes},
		{Name: "x_k8s_server_version", Arguments: takes(anything), Handler: clusterVersion},
		{Name: "x_metrics_decode", Arguments: takes(text), Handler: decodeMetrics},
	}
}

// asString returns the text of a string type, and nil for anything else.
func asString(arguments []any) (any, error) {
	v := reflect.ValueOf(arguments[0])
	if v.IsValid() && v.Kind() == reflect.String {
		return v.String(), nil
	}
	return nil, nil
}

// decodeMetrics parses the text format of Prometheus, and returns the samples sorted by their labels.
func decodeMetrics(arguments []any) (any, error) {
	decoder := &expfmt.SampleDecoder{
		Dec:  expfmt.NewDecoder(strings.NewReader(arguments[0].(string)), expfmt.NewFormat(expfmt.TypeTextPlain)),
		Opts: &expfmt.DecodeOptions{Timestamp: model.Now()},
	}
	var all model.Vector
	for {
		var some model.Vector
		err := decoder.Decode(&some)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("decode metrics: %w", err)
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b *model.Sample) int {
		switch {
		case a.Metric.Before(b.Metric):
			return -1
		case b.Metric.Before(a.Metric):
			return 1
		}
		return int(a.Timestamp - b.Timestamp)
	})
	samples := make([]any, len(all))
	for i, s := range all {
		metric := make(map[string]any, len(s.Metric))
		for name, value := range s.Metric {
			metric[string(name)] = string(value)
		}
		samples[i] = map[string]any{"metric": metric, "value": float64(s.Value), "timestamp": float64(s.Timestamp)}
	}
	return samples, nil
}
