package nearest_test

import (
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

func TestName(t *testing.T) {
	known := []string{"command", "page", "files", "env", strings.Repeat("long", 20)}
	for name, want := range map[string]string{
		"comand": "command", "COMMAND": "command", "flies": "files", "pgae": "page", "enw": "env", "": "", "x": "", "volumes": "",
		strings.Repeat("long", 20) + "s": "",
	} {
		if got := nearest.Name(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
