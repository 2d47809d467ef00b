package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsWrongInAnImagesFile(t *testing.T) {
	t.Parallel()
	const item = "images:\n- name: a\n"
	for _, c := range []struct{ file, want, hint string }{
		{"", "images.yaml: is empty", "images: []"},
		{"# nothing\n", "images.yaml: is empty", ""},
		{"null", "images.yaml:1:1: the file must be an object, not nothing", ""},
		{"[]", "images.yaml:1:1: the file must be an object, not a list", ""},
		{"{}", "images.yaml:1:1: images is missing", ""},
		{"images: {}", "images.yaml:1:9: images must be a list, not an object", ""},
		{"images:\n- a", "images.yaml:2:3: an image must be an object, not \"a\"", ""},
		{"imags: []", "images.yaml:1:1: unknown key \"imags\"", "did you mean \"images\"?"},
		{"apiVersion: v1\nimages: []", "images.yaml:1:13: apiVersion is \"v1\"", "operator-lab.dev/v1alpha1"},
		{"kind: Image\nimages: []", "images.yaml:1:7: kind is \"Image\"", "Images"},
		{"images:\n- wait: true", "images.yaml:2:3: name is missing", ""},
		{item, "images.yaml:2:3: nothing says what the image is", "command, project, page, bundle, wait, pullError"},
		{item + "  comand: [x]", "images.yaml:3:3: unknown key \"comand\"", "did you mean \"command\"?"},
		{item + "  zzzzzz: [x]", "images.yaml:3:3: unknown key \"zzzzzz\"", "known are name, command"},
		{item + "  <<: {wait: true}", "images.yaml:3:3: unknown key \"<<\"", ""},
		{item + "  wait: true\n  wait: true", "images.yaml:4:3: \"wait\" is there twice", ""},
		{item + "  wait: yes", "images.yaml:3:9: wait must be true", ""},
		{item + "  wait: false", "images.yaml:3:9: wait must be true", ""},
		{item + "  command: x", "images.yaml:3:12: command must be a list, not \"x\"", ""},
		{item + "  command: []", "images.yaml:3:12: command names no program", "./server"},
		{item + "  command: ['']", "images.yaml:3:12: command names no program", ""},
		{item + "  command: [a, [b]]", "images.yaml:3:16: an item of command must be a text, not a list", ""},
		{item + "  command: [\"a\\0b\"]", "images.yaml:3:13: an item of command has a character that no argument, variable or path can have", ""},
		{item + "  command: [x]\n  page: y", "images.yaml:4:3: an image is one thing: command and page exclude each other", ""},
		{item + "  pullError: x\n  startDelay: 1s", "images.yaml:4:3: startDelay says nothing beside pullError, only beside command, project, page, bundle, wait", ""},
		{item + "  page: x\n  args: [y]", "images.yaml:4:3: args says nothing beside page, only beside command", ""},
		{item + "  project: nowhere", "images.yaml:3:12: project: ", "the directory of an operator"},
		{item + "  project: ''", "images.yaml:3:12: project: ", ""},
		{item + "  bundle: nowhere", "images.yaml:3:11: bundle: ", "a directory with manifests and metadata"},
		{item + "  bundle: .", "images.yaml:3:11: bundle: ", "a directory with manifests and metadata"},
		{item + "  project: [.]", "images.yaml:3:12: project must be a text, not a list", ""},
		{item + "  command: [x]\n  operator: A_b", "images.yaml:4:13: operator: \"A_b\" is not made of small letters, digits and dashes", "my-operator"},
		{item + "  page: x\n  operator: y", "images.yaml:4:3: operator says nothing beside page", ""},
		{item + "  project: .\n  files: {/a: b}", "images.yaml:4:3: files says nothing beside project", ""},
		{item + "  page: {}", "images.yaml:3:9: page must be a text, not an object", ""},
		{item + "  pullError: ' '", "images.yaml:3:14: pullError is empty", ""},
		{item + "  wait: true\n  pullDelay: 5", "images.yaml:4:14: pullDelay must be a duration, not \"5\"", "such as 5s"},
		{item + "  wait: true\n  pullDelay: -5s", "images.yaml:4:14: pullDelay must be a duration, not \"-5s\"", ""},
		{item + "  page: x\n  env: [a]", "images.yaml:4:8: env must be an object, not a list", ""},
		{item + "  page: x\n  env: {'a=b': c}", "images.yaml:4:9: \"a=b\" is no name of a variable", ""},
		{item + "  page: x\n  env: {a: {}}", "images.yaml:4:12: a must be a text, not an object", ""},
		{item + "  page: x\n  env: {[a]: b}", "images.yaml:4:9: a key must be a text, not a list", ""},
		{item + "  page: x\n  files: {a: b}", "images.yaml:4:11: \"a\" is no absolute path of a file", ""},
		{item + "  page: x\n  files: {/a: b, /a/b: c}", "images.yaml:4:18: \"/a/b\" is there twice, or one is the folder of the other", ""},
		{item + "  page: x\n  files: {/a/b: b, /a: c}", "images.yaml:4:20: \"/a\" is there twice, or one is the folder of the other", ""},
		{item + "  page: x\n  files: {/a/../b: b, /b: c}", "images.yaml:4:23: \"/b\" is there twice, or one is the folder of the other", ""},
		{"images:\n- name: UPPER\n  wait: true", "images.yaml:2:9: name: \"UPPER\" matches no name", "quay.io/you/app:*"},
		{"images:\n- name: [a]\n  wait: true", "images.yaml:2:9: name must be a text, not a list", ""},
		{"images: []\n---\nimages: []", "images.yaml:2:1: a second document begins here", "one 'images'"},
		{"images: []\n---\n\t", "images.yaml", ""},
		{"images: [", "images.yaml", ""},
		{"a: b: c", "images.yaml:1: not YAML: mapping values are not allowed", ""},
		{"images: \xff", "images.yaml:1: not YAML: ", ""},
		{"images: *a", "images.yaml:1: not YAML: unknown anchor 'a' referenced", ""},
	} {
		_, wrong := decode("images.yaml", []byte(c.file))
		if len(wrong) == 0 {
			t.Errorf("%q is fine, want %s", c.file, c.want)
			continue
		}
		if !strings.HasPrefix(wrong[0].Error(), c.want) || !strings.Contains(wrong[0].Hint, c.hint) {
			t.Errorf("%q:\n%v\n%s, want\n%s\n%s", c.file, wrong, wrong[0].Hint, c.want, c.hint)
		}
	}
	_, wrong := decode("f", []byte("images:\n- name: a\n  wait: 1\n- name: b\n  pag: x\n"))
	if len(wrong) != 2 || wrong[0].Line != 3 || wrong[1].Line != 5 {
		t.Errorf("not all at once: %v", wrong)
	}
}

func TestTheExampleIsInOrder(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	images, wrong := decode("testdata/images.yaml", content)
	if len(wrong) > 0 || len(images) != 7 {
		t.Fatalf("%d images: %v", len(images), wrong)
	}
	app := images[0]
	here, _ := filepath.Abs("testdata")
	if app.command[0] != filepath.Join(here, "app.sh") || app.workingDir != here || app.args[1] != "$(LAB_HOST):$(LAB_PORT_8080)" ||
		app.files["/etc/app/config.yaml"] != "debug: true\n" || app.env[0].name != "GREETING" {
		t.Errorf("%+v", app)
	}
	// It shows every key there is.
	for _, f := range mappingFields {
		if !strings.Contains(string(content), "  "+f.key+":") && !strings.Contains(string(content), "- "+f.key+":") {
			t.Errorf("the example does not show %s", f.key)
		}
	}
}

func TestBombs(t *testing.T) {
	t.Parallel()
	laughs := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for r := 'b'; r < 'j'; r++ {
		laughs += fmt.Sprintf("%c: &%c [%s*%c]\n", r, r, strings.Repeat(fmt.Sprintf("*%c, ", r-1), 8), r-1)
	}
	many := "x: &x {name: a, page: p, env: {" + strings.Repeat("a%: b, ", 1000) + "z: z}}\n"
	n := 0
	for strings.Contains(many, "%") {
		n++
		many = strings.Replace(many, "%", fmt.Sprint(n), 1)
	}
	for name, file := range map[string]string{
		"laughs":    laughs + "images: *i\n",
		"one list":  "images: [{name: a, command: &c [" + strings.Repeat("x, ", 1000) + "]}, " + strings.Repeat("{name: a, command: *c}, ", 10000) + "]",
		"wrong":     many + "images: [" + strings.Repeat("*x, ", 100000) + "]",
		"deep":      "images: " + strings.Repeat("[", 100000),
		"deep flow": "images: " + strings.Repeat("{a: ", 9000) + strings.Repeat("}", 9000),
		"itself":    "images: &i [*i, *i]",
	} {
		images, wrong := decode("f", []byte(file))
		if len(wrong) == 0 || len(wrong) > maxProblems || len(wrong.Error()) > 4000 {
			t.Errorf("%s: %d images, %d problems", name, len(images), len(wrong))
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, []byte("images: []\n"+strings.Repeat("# ...............\n", 10<<20/18)), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "missing"): "no such file or directory",
		dir:                           "is not a regular file",
		"/dev/zero":                   "is not a regular file",
		large:                         "is larger than 1 MiB",
	} {
		_, err := NewCatalogue("", file)
		if err == nil || err.Error() != file+": "+want {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
		if _, ok := errors.AsType[Problem](err); !ok {
			t.Errorf("%v is no Problem", err)
		}
	}
}

// FuzzDecode: whatever is in a file, it is read or something is wrong with it, at a place that it has.
func FuzzDecode(f *testing.F) {
	example, err := os.ReadFile("testdata/images.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, s := range []string{
		"", "images: []", "images: &a [*a]", "images:\n- &x {name: '**', <<: *x}", "{images: [{name: a:*, env: {A: 1, A: 2}, command: [~]}]}",
		"images: [{? [a] : b}]", "--- !!x\nimages: !!set {a}\n...\n", "images:\n- name: a@b\n  page: |\n\t\n", "%YAML 1.1\n---\n", "images: !!binary x",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		images, wrong := decode("f", data)
		for _, p := range wrong {
			if p.Message == "" || strings.Contains(p.Message, "\n") || p.Line < 0 || p.Line > 2+strings.Count(string(data), "\n")+strings.Count(string(data), "\r")+strings.Count(string(data), "\u0085")+strings.Count(string(data), "\u2028")+strings.Count(string(data), "\u2029") {
				t.Fatalf("%+v", p)
			}
		}
		if len(wrong) > 0 {
			return
		}
		c := &Catalogue{}
		for _, m := range images {
			if e := c.entry(m); e.program == nil {
				t.Fatalf("nothing: %+v", m)
			}
		}
	})
}

// FuzzPattern: a pattern without a star, and a name, match what they are.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"nginx", "a/b:c", "quay.io/**/x:*", "localhost:5000/a@sha256:" + strings.Repeat("0", 64), "docker.io/a", "*", "**", "docker.io/**"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePattern(text)
		if err != nil || strings.Contains(text, "*") {
			return
		}
		n, err := parseName(text)
		if err != nil {
			t.Fatalf("%q is a pattern and no name: %v", text, err)
		}
		if !p.matches(n) {
			t.Fatalf("%q does not match itself: %+v %+v", text, p, n)
		}
	})
}

// FuzzExpand: what has no dollar stays, and nothing known means that only $$ changes.
func FuzzExpand(f *testing.F) {
	f.Add("$(A) $$ $(")
	f.Fuzz(func(t *testing.T, text string) {
		got := Expand(text, func(string) (string, bool) { return "", false })
		if want := text; !strings.Contains(text, "$$") && got != want {
			t.Fatalf("%q is expanded to %q", text, got)
		}
	})
}

// FuzzReplacePaths: nothing but a path of a volume is replaced.
func FuzzReplacePaths(f *testing.F) {
	f.Add("--data=/data/x,/data,/database,x/data")
	f.Fuzz(func(t *testing.T, text string) {
		got := ReplacePaths(text, map[string]string{"/data": "/private"})
		if strings.ReplaceAll(got, "/private", "/data") != strings.ReplaceAll(text, "/private", "/data") {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}

func TestReplacePaths(t *testing.T) {
	mounts := map[string]string{"/data": "/private", "/data/deep": "/elsewhere"}
	for in, want := range map[string]string{
		"--data=/data/x,/data,/database,x/data,/data.d": "--data=/private/x,/private,/database,x/data,/data.d",
		"file:///data/deep/x":                           "file:///data/deep/x",
		"/data/deep:/data":                              "/elsewhere:/private",
		"":                                              "",
	} {
		if got := ReplacePaths(in, mounts); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
