package project

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/cli/values"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/sandbox"
)

// chartFile makes a directory a Helm chart.
const chartFile = "Chart.yaml"

func isChart(dir string) bool { return fileExists(filepath.Join(dir, chartFile)) }

// renderChart renders a Helm chart with its default values and those of files, as a release with the project's name in the
// namespace default. Templates that look up objects of the cluster find none.
func (r manifestReader) renderChart(dir string) ([]*unstructured.Unstructured, error) {
	files, err := executeChart(dir, r.name, r.values)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &sandbox.Problem{
			Err:  errors.New(strings.ReplaceAll(text, r.home+"/", "")),
			Hint: "'helm template' says the same; values are given with --values FILE, and dependencies are fetched by 'helm dependency build'",
		}
	}
	var all []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		objects, err := decodeObjects(bytes.NewReader([]byte(files[name])))
		if err != nil {
			return nil, problem("'helm template' shows what was rendered", "chart %s: %s: %w", r.below(dir), name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// executeChart returns the manifests of a chart, its definitions of kinds too, as a release of a name with the values of files.
func executeChart(dir, name string, valueFiles []string) (map[string]string, error) {
	chart, err := helm.LoadChart(dir)
	if err != nil {
		return nil, err
	}
	given, err := (&values.Options{ValueFiles: valueFiles}).MergeValues(nil)
	if err != nil {
		return nil, err
	}
	rendered, err := helm.Execute(chart, name, given)
	if err != nil {
		return nil, err
	}
	for _, crd := range chart.CRDObjects() {
		rendered[crd.Filename] = string(crd.File.Data)
	}
	return rendered, nil
}
