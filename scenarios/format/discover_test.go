package format

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// test is the text of a test with a name and labels.
func test(name, labels string) string {
	return "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: " + name + ", labels: {" + labels + "}}\nspec: {steps: []}\n"
}

// tree is a file system of these files.
func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// names of what was found, with their folders.
func namesOf(tests []*Loaded) []string {
	var out []string
	for _, l := range tests {
		out = append(out, l.Folder+" "+l.Test.Name)
	}
	return out
}

func TestDiscover(t *testing.T) {
	files := tree(map[string]string{
		"a/chainsaw-test.yaml":      test("one", "size: small"),
		"a/b/chainsaw-test.yml":     test("two", "size: big") + "---\n" + test("three", ""),
		"a/b/c/chainsaw-test.yaml":  test("four", ""),
		"a/b/c/chainsaw-test.yml":   test("not", ""),
		"a/b/c/other.yaml":          test("five", "size: small"),
		"a/Numbered_one/01-x.yaml":  "",
		"a/Numbered_one/readme.txt": "",
		"a/other/resource.yaml":     "",
		"bad/chainsaw-test.yaml":    "a: [\n",
	})
	for name, c := range map[string]struct {
		with Discovery
		want []string
	}{
		"all":             {Discovery{}, []string{"a one", "a/Numbered_one numbered-one", "a/b two", "a/b three", "a/b/c four", "bad "}},
		"below":           {Discovery{Paths: []string{"a/b/c", "a/b", "a/b/"}}, []string{"a/b two", "a/b three", "a/b/c four"}},
		"a file":          {Discovery{Paths: []string{"a/b/c/other.yaml"}}, []string{"a/b/c five"}},
		"other file":      {Discovery{Paths: []string{"a"}, TestFile: "other"}, []string{"a/Numbered_one numbered-one", "a/b/c five"}},
		"with extension":  {Discovery{Paths: []string{"a/b"}, TestFile: "chainsaw-test.yml"}, []string{"a/b two", "a/b three", "a/b/c not"}},
		"selector":        {Discovery{Paths: []string{"a"}, Selectors: []string{"size", "size notin (big)"}}, []string{"a one"}},
		"bad stays":       {Discovery{Selectors: []string{"size=big"}}, []string{"a/b two", "bad "}},
		"include":         {Discovery{Paths: []string{"a"}, Include: "^t"}, []string{"a/b two", "a/b three"}},
		"as in Chainsaw":  {Discovery{Paths: []string{"a"}, Include: "chainsaw/t.o|nothing"}, []string{"a/b two"}},
		"exclude":         {Discovery{Paths: []string{"a"}, Exclude: "[ou]"}, []string{"a/b three"}},
		"exclude all":     {Discovery{Paths: []string{"a"}, Exclude: "^.*$"}, nil},
		"full name":       {Discovery{Paths: []string{"a"}, Include: `^a/b\[`, FullName: true}, []string{"a/b two", "a/b three"}},
		"first shard":     {Discovery{Paths: []string{"a"}, ShardCount: 3}, []string{"a one"}},
		"last shard":      {Discovery{Paths: []string{"a"}, ShardIndex: 2, ShardCount: 3}, []string{"a/b three", "a/b/c four"}},
		"more than tests": {Discovery{Paths: []string{"a"}, ShardIndex: 0, ShardCount: 50}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.with.FS = files
			got, err := Discover(c.with)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, namesOf(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDiscoverBad(t *testing.T) {
	for name, c := range map[string]struct {
		with Discovery
		want []string
	}{
		"paths": {Discovery{Paths: []string{"x", "y"}}, []string{
			"x: file does not exist | name folders that have tests in them, or files of tests",
			"y: file does not exist | name folders that have tests in them, or files of tests",
		}},
		"selector": {Discovery{Selectors: []string{"a=b=c"}}, []string{
			"not a selector of labels: found '=', expected: ',' or 'end of string' | such as team=blue or 'team in (blue,red),!slow'",
		}},
		"pattern": {Discovery{Include: "a/("}, []string{"tests to include: \"(\" is not a regular expression: error parsing regexp: missing closing ): `(`"}},
		"shard":   {Discovery{ShardIndex: 3, ShardCount: 3}, []string{"there is no shard 3 of 3 | the index is from 0 to one less than the count"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.with.FS = tree(nil)
			_, err := Discover(c.with)
			wrong, ok := errors.AsType[Problems](err)
			if !ok {
				t.Fatalf("%v", err)
			}
			if diff := cmp.Diff(c.want, tell(wrong)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if _, ok := errors.AsType[Problem](err); !ok {
				t.Error("a problem is not found in it")
			}
		})
	}
}

func TestDiscoverOnDisk(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("real/a/chainsaw-test.yaml", test("one", ""))
	write("real/only.yaml", test("two", ""))
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	t.Chdir(dir)
	for name, c := range map[string]struct {
		with Discovery
		want []string
	}{
		"here":          {Discovery{}, []string{"real/a one"}},
		"a link":        {Discovery{Paths: []string{"link"}}, []string{"link/a one"}},
		"absolute file": {Discovery{Paths: []string{"real"}, TestFile: filepath.Join(dir, "real", "only.yaml")}, []string{"real two"}},
		"absolute path": {Discovery{Paths: []string{filepath.Join(dir, "real")}, FullName: true, Include: `^real/a\[one\]$`}, []string{filepath.Join(dir, "real", "a") + " one"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Discover(c.with)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, namesOf(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestManifests(t *testing.T) {
	got, err := Discover(Discovery{FS: tree(map[string]string{
		"x/01-b.yaml": "", "x/01-a.yml": "", "x/01-assert.yaml": "", "x/02-errors.yaml": "", "x/a.yaml": "", "x/1-.yaml/f": "",
	})})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	var lines []string
	for _, s := range got[0].Test.Spec.Steps {
		for _, o := range s.Try {
			file, _, _ := reference(&o)
			lines = append(lines, strings.Join([]string{s.Name, o.Type(), string(file), o.Position.String()}, " "))
		}
	}
	want := []string{
		"step-01 apply 01-a.yml x/01-a.yml", "step-01 apply 01-b.yaml x/01-b.yaml", "step-01 assert 01-assert.yaml x/01-assert.yaml",
		"step-02 error 02-errors.yaml x/02-errors.yaml",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStepTemplates(t *testing.T) {
	const top = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: StepTemplate\nmetadata: {name: t}\nspec:\n"
	files := tree(map[string]string{
		"t.yaml": head + `  steps:
  - bindings: [{name: a, value: 1}]
    use: {template: sub/good.yaml, with: {bindings: [{name: c, value: 3}]}}
  - use: {template: sub/good.yaml}
`,
		"bad.yaml":           head + "  steps:\n  - use: {template: sub/recursive.yaml}\n  - use: {template: t.yaml}\n  - use: {template: two.yaml}\n  - use: {template: sub}\n",
		"two.yaml":           top + "  try: [{sleep: {duration: 1s}}]\n---\na: b\n",
		"sub/good.yaml":      top + "  bindings: [{name: b, value: 2}]\n  try: [{apply: {file: x.yaml}}]\n  catch: [{events: {}}]\n",
		"sub/recursive.yaml": top + "  use: {template: recursive.yaml}\n",
	})
	l := newLoader(Discovery{FS: files})
	good := l.tests("t.yaml", ".")
	if got := lines(good); len(got) > 0 {
		t.Fatal(got)
	}
	s := good[0].Test.Spec.Steps[0]
	var names []string
	for _, b := range s.Bindings {
		names = append(names, string(b.Name))
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Error(diff)
	}
	if s.Use != nil || s.TemplateFile != "sub/good.yaml" || len(s.Try) != 1 || len(s.Catch) != 1 || s.Try[0].Position.String() != "sub/good.yaml:6:9" {
		t.Errorf("%+v", s)
	}
	want := []string{
		"bad.yaml:8:10: the step template two.yaml cannot be used: has 2 documents, one step template is wanted",
		"bad.yaml:9:10: the step template sub cannot be used: is a folder, not a file",
		"sub/recursive.yaml:5:3: try is missing in spec",
		`sub/recursive.yaml:5:3: unknown field "use" in spec | a step template cannot use another`,
		`t.yaml:2:7: kind cannot be "Test" | apiVersion: chainsaw.kyverno.io/v1alpha1 and kind: StepTemplate are wanted`,
	}
	if diff := cmp.Diff(want, lines(l.tests("bad.yaml", "."))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
