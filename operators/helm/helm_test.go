package helm_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/operators/helm"
)

// write writes files by their slash-separated paths into a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with returns the files of a small chart, some of them replaced.
func with(more map[string]string) map[string]string {
	files := map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: gizmo\nversion: 0.1.0\n",
		"values.yaml":           "# how many\nsize: 1\ncolours:\n  # the first\n  - red\n",
		"templates/gizmo.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  size: {{ .Values.size | quote }}\n",
		"templates/_helper.tpl": `{{ define "x" }}{{ end }}`,
		"templates/NOTES.txt":   "It is there.",
	}
	maps.Copy(files, more)
	return files
}

const entry = "- group: example.com\n  version: v1\n  kind: Gizmo\n  chart: chart\n"

func TestLoad(t *testing.T) {
	t.Setenv("FROM_PROCESS", "there")
	chart := map[string]string{}
	for name, text := range with(nil) {
		chart["chart/"+name] = text
	}
	load := func(t *testing.T, watches string, env ...string) (map[string]string, error) {
		t.Helper()
		chart[helm.WatchesFile] = watches
		all, err := helm.Load(filepath.Join(write(t, chart), helm.WatchesFile), env)
		if err != nil {
			return nil, err
		}
		if len(all) != 1 || all[0].Kind != "Gizmo" || all[0].Chart.Name() != "gizmo" || !filepath.IsAbs(all[0].ChartPath) {
			t.Errorf("loaded was %+v", all)
		}
		return all[0].OverrideValues, nil
	}
	overrides, err := load(t, entry+"  overrideValues:\n    image: $IMAGE\n    where: ${FROM_PROCESS}\n    size: '{{ add 1 2 }}'\n", "IMAGE=busybox")
	if err != nil || overrides["image"] != "busybox" || overrides["where"] != "there" || overrides["size"] != "3" {
		t.Errorf("overrides are %v: %v", overrides, err)
	}
	for name, c := range map[string]struct{ watches, says string }{
		"the same kind twice": {entry + entry, "duplicate GVK"},
		"no kind":             {"- group: example.com\n  version: v1\n  chart: chart\n", "kind must not be empty"},
		"no version":          {"- kind: Gizmo\n  chart: chart\n", "version must not be empty"},
		"a chart elsewhere":   {strings.Replace(entry, "chart: chart", "chart: nowhere", 1), "invalid chart"},
		"no chart":            {strings.Replace(entry, "  chart: chart\n", "", 1), "entry 1 names no chart"},
		"no entry":            {"[]", "no entry"},
		"no list":             {"kind: Gizmo\nchart: chart\n", "no list of kinds with charts"},
		"a bad override":      {entry + "  overrideValues:\n    size: '{{ wrong }}'\n", "override values"},
	} {
		if _, err := load(t, c.watches); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, which does not say %q", name, err, c.says)
		}
	}
}

func TestIsFile(t *testing.T) {
	for text, want := range map[string]bool{
		entry: true,
		"- group: example.com\n  version: v1\n  kind: Gizmo\n  role: gizmo\n": false, // of an Ansible operator
		"chart: [": true, // what is wrong with it is worth saying
		"":         false,
	} {
		if file := filepath.Join(write(t, map[string]string{helm.WatchesFile: text}), helm.WatchesFile); helm.IsFile(file) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}

func TestFromArguments(t *testing.T) {
	o, err := helm.FromArguments([]string{"--leader-elect", "--reconcile-period=5s", "--health-probe-bind-address", ":8081"})
	if err != nil || o.ReconcilePeriod.Seconds() != 5 || o.MaxConcurrentReconciles != 1 {
		t.Errorf("%+v: %v", o, err)
	}
	if _, err := helm.FromArguments([]string{"--reconcile-period=soon"}); err == nil {
		t.Error("a period that is none is taken")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(entry)
	f.Add("- 1\n- {chart: 2, overrideValues: {a: 1}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), helm.WatchesFile)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := helm.Load(file, nil); err == nil && len(all) > 0 { // there is no chart
			t.Errorf("%q has %d entries", text, len(all))
		}
	})
}
