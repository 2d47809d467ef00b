package images

import (
	"strings"
	"testing"
)

func TestNamesAreCompletedAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"nginx":                         "docker.io/library/nginx:latest",
		"nginx:1.27":                    "docker.io/library/nginx:1.27",
		"kaitoy/zundoko-operator":       "docker.io/kaitoy/zundoko-operator:latest",
		"docker.io/nginx":               "docker.io/library/nginx:latest",
		"index.docker.io/library/nginx": "docker.io/library/nginx:latest",
		"localhost/app":                 "localhost/app:latest",
		"localhost:5000/app:v1":         "localhost:5000/app:v1",
		"quay.io/daein/prodpage:latest": "quay.io/daein/prodpage:latest",
		"quay.io/a/b@sha256:" + strings.Repeat("0", 64):    "quay.io/a/b@sha256:" + strings.Repeat("0", 64),
		"quay.io/a/b:v1@sha256:" + strings.Repeat("0", 64): "quay.io/a/b:v1@sha256:" + strings.Repeat("0", 64),
	} {
		n, err := parseName(image)
		if err != nil || n.String() != want {
			t.Errorf("%s is %s, want %s (%v)", image, n, want, err)
		}
	}
	for _, image := range []string{"", "UPPER", "a b", "nginx:", "nginx:-", "http://nginx", strings.Repeat("a", 300), "a@sha256:1"} {
		if n, err := parseName(image); err == nil {
			t.Errorf("%q is %s, want an error", image, n)
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{"nginx", []string{"nginx", "nginx:1.27", "docker.io/library/nginx:x", "nginx" + digest}, []string{"you/nginx", "nginx2"}},
		{"nginx:*", []string{"nginx", "nginx:1.27", "nginx" + digest}, []string{"you/nginx"}},
		{"nginx:1.*", []string{"nginx:1.27"}, []string{"nginx", "nginx:2.1", "nginx" + digest}},
		{"docker.io/nginx", []string{"nginx"}, []string{"quay.io/nginx"}},
		{"quay.io/daein/*:*", []string{"quay.io/daein/prodpage:v1"}, []string{"quay.io/daein/a/b", "quay.io/other/a"}},
		{"quay.io/**", []string{"quay.io/a", "quay.io/a/b/c:v"}, []string{"docker.io/a", "evil-quay.io/a"}},
		{"quay.io/**/operator", []string{"quay.io/a/operator", "quay.io/a/b/operator"}, []string{"quay.io/operator", "quay.io/a/operator2"}},
		{"*", []string{"nginx", "busybox:1"}, []string{"a/b", "quay.io/a"}},
		{"**", []string{"nginx", "a/b", "quay.io/a/b/c:d" + digest}, nil},
		{"*.io/app", []string{"quay.io/app", "ghcr.io/app"}, []string{"you/app", "quay.io/a/app"}},
		{"**/app:v1", []string{"you/app:v1", "localhost:5000/app:v1"}, []string{"you/app", "my-app:v1x"}},
		{"localhost:5000/*", []string{"localhost:5000/a:b"}, []string{"localhost/a"}},
		{"app" + digest, []string{"app" + digest, "app:v1" + digest}, []string{"app"}},
		{"*a*b*", []string{"ab", "xaxbx", "aab"}, []string{"ba", "a/b"}},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, image := range append(c.yes, c.not...) {
			n, err := parseName(image)
			if err != nil {
				t.Fatal(err)
			}
			want := len(c.yes) > 0
			if want {
				c.yes = c.yes[1:]
			}
			if got := p.matches(n); got != want {
				t.Errorf("%s matches %s: %v", c.pattern, image, got)
			}
		}
	}
	for _, bad := range []string{"", ":v1", "a:", "a@", "a b", "[ab]", "a?", "UPPER", "a//b", "/a", "a@sha256:12", "-", strings.Repeat("a.", 10_000) + "b/c"} {
		if p, err := parsePattern(bad); err == nil {
			t.Errorf("%q is the pattern %+v, want an error", bad, p)
		}
	}
}

func TestTheMostSpecificCounts(t *testing.T) {
	t.Parallel()
	list := func(patterns ...string) (out []entry) {
		for _, text := range patterns {
			p, err := parsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, entry{pattern: p})
		}
		return out
	}
	for _, c := range []struct {
		image        string
		own, bundled []entry
		want         string
	}{
		{"quay.io/a/b:v1", list("**", "quay.io/**", "quay.io/a/*", "quay.io/a/b", "quay.io/a/b:v*", "quay.io/a/b:v1"), nil, "quay.io/a/b:v1"},
		{"quay.io/a/b:v2", list("**", "quay.io/a/b", "quay.io/a/b:v*"), nil, "quay.io/a/b:v*"},
		{"quay.io/a/b:v2", list("quay.io/a/*:v2", "quay.io/a/b"), nil, "quay.io/a/b"},
		{"quay.io/a/b:v2", list("**", "quay.io/**"), list("quay.io/a/b:v2"), "quay.io/**"}, // the person's first
		{"quay.io/a/b", list("quay.io/a/x"), list("quay.io/a/b"), "quay.io/a/b"},
		{"a", list("a:*", "a"), nil, "a:*"}, // equals: the first
		{"a", list("a", "a:*"), nil, "a"},
		{"a", list("b"), nil, ""},
		{"quay.io/a", list("**.io/a", "*.io/a"), nil, "*.io/a"},
	} {
		n, _ := parseName(c.image)
		if e := find(n, c.own, c.bundled); e.pattern.text != c.want {
			t.Errorf("%s is %q, want %q", c.image, e.pattern.text, c.want)
		}
	}
}

// The expected results are those of Kubernetes' own expansion.
func TestExpand(t *testing.T) {
	t.Parallel()
	values := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}
	for in, want := range map[string]string{
		"":                  "",
		"x":                 "x",
		"$(A)":              "1",
		"-$(A)-$(A)-":       "-1-1-",
		"$(B)":              "$(A)",
		"[$(EMPTY)]":        "[]",
		"$(C)":              "$(C)",
		"$$(A)":             "$(A)",
		"$$$(A)":            "$1",
		"$$$$(A)":           "$$(A)",
		"$A":                "$A",
		"${A}":              "${A}",
		"$(A":               "$(A",
		"$($(A)":            "$($(A)",
		"$":                 "$",
		"a$":                "a$",
		"$$":                "$",
		"$(A)$":             "1$",
		"$é$(A)":            "$é1",
		"$()":               "$()",
		"\xff$(A)\xff$\xff": "\xff1\xff$\xff",
	} {
		got := Expand(in, func(name string) (string, bool) { v, ok := values[name]; return v, ok })
		if got != want {
			t.Errorf("%q is expanded to %q, want %q", in, got, want)
		}
	}
}
