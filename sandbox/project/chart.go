package project

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/sandbox"
)

// chartFile makes a directory a Helm chart.
const chartFile = "Chart.yaml"

func isChart(dir string) bool { return fileExists(filepath.Join(dir, chartFile)) }

// renderChart renders a Helm chart with its default values and those of Options.Values, as a release with the project's name
// in the namespace default. Templates that look up objects of the cluster find none.
func (p *Project) renderChart(dir string) ([]*unstructured.Unstructured, error) {
	files, err := executeChart(dir, p.Name, p.options.Values)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &sandbox.Problem{
			Err:  fmt.Errorf("chart %s cannot be rendered: %s", p.below(dir), strings.ReplaceAll(text, p.Root+"/", "")),
			Hint: "'helm template' says the same; values are given with --values FILE, and dependencies are fetched by 'helm dependency build'",
		}
	}
	var all []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		objects, err := decodeObjects(bytes.NewReader([]byte(files[name])))
		if err != nil {
			return nil, problem("'helm template' shows what was rendered", "chart %s: %s: %w", p.below(dir), name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// executeChart returns the files that a chart consists of when its templates were executed, as a release of a name with the
// values of files, without those that are no manifests.
func executeChart(dir, name string, valueFiles []string) (map[string]string, error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	for _, file := range valueFiles {
		more, err := common.ReadValuesFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		given = loader.MergeMaps(given, more)
	}
	if err := chartutil.ProcessDependencies(chart, given); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: name, Namespace: "default", Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(rendered, func(name, _ string) bool {
		base := path.Base(name)
		return base == "NOTES.txt" || strings.HasPrefix(base, "_")
	})
	for _, crd := range chart.CRDObjects() {
		rendered[crd.Filename] = string(crd.File.Data)
	}
	return rendered, nil
}
