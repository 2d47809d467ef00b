package images

import "testing"

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		pattern, image string
		want           bool
	}{
		{"nginx", "nginx", true},
		{"nginx", "docker.io/library/nginx:1.29", true},
		{"nginx:1.*", "nginx:1.29", true},
		{"nginx:1.*", "nginx", false},
		{"quay.io/*/prodpage", "quay.io/daein/prodpage:v1", true},
		{"*", "quay.io/daein/prodpage:v1", false},
		{"**", "quay.io/daein/prodpage:v1", true},
		{"**", "no image", false},
		{"no pattern", "nginx", false},
	} {
		if got := Matches(test.pattern, test.image); got != test.want {
			t.Errorf("%s matches %s: %v", test.pattern, test.image, got)
		}
		if wrong := CheckPattern(test.pattern) != nil; wrong != (test.pattern == "no pattern") {
			t.Errorf("%s is wrong: %v", test.pattern, wrong)
		}
	}
}
