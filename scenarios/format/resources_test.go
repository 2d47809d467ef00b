package format

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadResources(t *testing.T) {
	files := tree(map[string]string{
		"d/two.yaml":  "kind: A\na: 1\n---\n# nothing\n---\nkind: B\na: 1\na: 1.5\n",
		"d/list.yaml": "kind: List\nitems:\n- kind: C\n- {kind: D}\n",
		"d/json.json": `{"kind": "E", "a": [1, "yes"]}`,
		"none.yaml":   "(x): true\n",
	})
	for name, c := range map[string]struct {
		file     string
		manifest bool
		want     []string
	}{
		"documents": {"two.yaml", true, []string{"d/two.yaml:1:1 map[a:1 kind:A]", "d/two.yaml:6:1 map[a:1.5 kind:B]"}},
		"list":      {"./list.yaml", true, []string{"d/list.yaml:3:3 map[kind:C]", "d/list.yaml:4:3 map[kind:D]"}},
		"pattern": {"*.[jy]*", true, []string{
			"d/json.json:1:1 map[a:[1 yes] kind:E]", "d/list.yaml:3:3 map[kind:C]", "d/list.yaml:4:3 map[kind:D]",
			"d/two.yaml:1:1 map[a:1 kind:A]", "d/two.yaml:6:1 map[a:1.5 kind:B]",
		}},
		"to assert": {"../none.yaml", false, []string{"none.yaml:1:1 map[(x):true]"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LoadResources(t.Context(), ResourceFiles{FS: files, Folder: "d", File: c.file, Manifest: c.manifest})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, r := range got {
				lines = append(lines, fmt.Sprintf("%s %v", r.Position, r.Object))
			}
			if diff := cmp.Diff(c.want, lines); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLoadResourcesBad(t *testing.T) {
	files := tree(map[string]string{
		"d/configmap.yaml": "kind: A\n",
		"d/none.yaml":      "a: b\n---\n- a\n---\nkind: List\nitems: [a, {b: c}]\n---\na: [\n",
		"d/empty.yaml":     "# nothing\n",
	})
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"near":      {"confimap.yaml", []string{`d/confimap.yaml: there is no such file | did you mean "configmap.yaml"?`}},
		"not there": {"x/y.yaml", []string{"d/x/y.yaml: there is no such file | paths are relative to the folder of the test"}},
		"pattern":   {"x*.yaml", []string{"d/x*.yaml: there is no such file"}},
		"brackets":  {"[.yaml", []string{"d/[.yaml: is not a pattern of files: syntax error in pattern"}},
		"empty":     {"empty.yaml", []string{"d/empty.yaml: there is no resource in it"}},
		"scheme":    {"s3://bucket/x.yaml", []string{"s3://bucket/x.yaml: files cannot be had by s3 | by http and https they can"}},
		"wrong": {"none.yaml", []string{
			"d/none.yaml:8: not YAML: did not find expected node content | check the indentation, and that quotes and brackets are closed",
			"d/none.yaml:1:1: the object has no kind | it needs apiVersion, kind and metadata.name",
			"d/none.yaml:3:1: the document must be an object, not a list",
			"d/none.yaml:6:9: items[0] must be an object",
			"d/none.yaml:6:12: items[1] has no kind | it needs apiVersion, kind and metadata.name",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadResources(t.Context(), ResourceFiles{FS: files, Folder: "d", File: c.file, Manifest: true})
			wrong, ok := errors.AsType[Problems](err)
			if !ok {
				t.Fatalf("%v", err)
			}
			if diff := cmp.Diff(c.want, tell(wrong)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLoadResourcesAbsolute(t *testing.T) {
	file := write(t, "a.yaml", "kind: A\n")
	got, err := LoadResources(t.Context(), ResourceFiles{Folder: filepath.Join(os.TempDir(), "elsewhere"), File: file})
	if err != nil || len(got) != 1 || got[0].Position.File != file {
		t.Fatal(got, err)
	}
}

func TestDownload(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good.yaml":
			fmt.Fprint(w, "kind: A\n---\nkind: B\n")
		case "/later.yaml":
			if asked.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(w, "kind: C\n")
		case "/large.yaml":
			fmt.Fprint(w, strings.Repeat("# comment\n", MaxFileSize/10+1))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct{ want, wrong string }{
		"good.yaml":  {want: "A B"},
		"later.yaml": {want: "C"},
		"large.yaml": {wrong: "/large.yaml: is larger than 8 MiB"},
		"none.yaml":  {wrong: "/none.yaml: cannot be downloaded: 404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LoadResources(t.Context(), ResourceFiles{Folder: "d", File: server.URL + "/" + name, Manifest: true})
			if c.wrong != "" {
				var wrong Problems
				if !errors.As(err, &wrong) || !strings.HasSuffix(err.Error(), c.wrong) {
					t.Fatal(err)
				}
				return
			}
			var kinds []string
			for _, r := range got {
				kinds = append(kinds, fmt.Sprint(r.Object["kind"]))
			}
			if err != nil || strings.Join(kinds, " ") != c.want {
				t.Fatal(kinds, err)
			}
		})
	}
}

func TestDownloadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		cancel()
	}))
	t.Cleanup(server.Close)
	if _, err := LoadResources(ctx, ResourceFiles{File: server.URL + "/x.yaml"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
