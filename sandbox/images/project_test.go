package images_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// TestAProjectIsBuiltWhenItsImageIsPulled has a script in the place of the binary that builds.
func TestAProjectIsBuiltWhenItsImageIsPulled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	script := "#!/bin/sh\n" +
		"if [ -f \"$2/broken\" ]; then echo 'error: main.go:3:1: it is broken' >&2; echo 'hint: mend it' >&2; exit 2; fi\n" +
		"printf '#!/bin/sh\\necho called with \"$@\"; echo in $OPERATOR_LAB_POD at $LAB_HOST:$LAB_PORT_9443 with $TMPDIR and $CERTS\\n' >\"$4\" && chmod +x \"$4\"\n" +
		"echo '{\"Tapped\": true}'\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	file := filepath.Join(dir, "images.yaml")
	write(t, file, "images: [{name: you/operator, project: .}]")
	c, err := images.NewCatalogue(binary, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if names := c.Operators(); len(names) != 1 || names[0] != filepath.Base(dir) {
		t.Errorf("the operator in %s is called %s", dir, names)
	}
	broken := filepath.Join(dir, "broken")
	write(t, broken, "")
	image := lookup(t, c, "you/operator:v1")
	if err := image.Make(t.Context()); err == nil || err.Error() != "main.go:3:1: it is broken" {
		t.Errorf("a source that does not compile: %v", err)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if err := image.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, log := container(t, "you/operator:v1")
	in.Command, in.Args = []string{"/manager", "--metrics-bind-address=0"}, []string{"--leader-elect", "--health-probe-bind-address=:8081", "--certs=/tmp/certs"}
	in.Env, in.Mounts = []string{"CERTS=/tmp/certs/tls.crt"}, []images.Mount{{ContainerPath: "/tmp/certs", HostPath: "/volume"}}
	<-start(t, c, in).Done()
	for _, want := range []string{
		"called with --metrics-bind-address=0 --leader-elect --health-probe-bind-address=127.0.0.1:38081 --certs=/volume\n",
		"in ns at 127.0.0.1:39443 with " + filepath.Join(in.Dir, "root", "tmp") + " and /volume/tls.crt\n",
		"is the program built of " + dir + ", a process of this machine",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("its log lacks %q:\n%s", want, log)
		}
	}
	if lookup(t, c, "nginx").Make != nil {
		t.Error("nginx is to be built")
	}
}

func TestArgumentsOfAnOperatorInAPod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, args, ignored string }{
		{"", "", ""},
		{"--metrics-addr :8080 --leader-elect=true -v=2", "--metrics-addr 127.0.0.1:38080 -v=2", "--leader-elect=true"},
		{"-health-addr=0.0.0.0:8081 --enable-leader-election", "-health-addr=127.0.0.1:38081", "--enable-leader-election"},
		{"--redis-addr=redis:6379 --db-addr redis:1", "--redis-addr=redis:6379 --db-addr redis:1", ""},
		{"--metrics-bind-address=0 --pprof-address", "--metrics-bind-address=0 --pprof-address", ""},
		{"serve addr=:80 --leader-elect-name=x", "serve addr=:80 --leader-elect-name=x", ""},
	} {
		args, ignored, err := images.OwnArgs(nowhere(t), strings.Fields(c.given), false)
		if err != nil || strings.Join(args, " ") != c.args || strings.Join(ignored, " ") != c.ignored {
			t.Errorf("%q becomes %q without %q: %v", c.given, args, ignored, err)
		}
		if args, ignored, err := images.OwnArgs(nowhere(t), strings.Fields(c.given), true); err != nil || len(args) != len(strings.Fields(c.given)) {
			t.Errorf("with taps %q becomes %q without %q: %v", c.given, args, ignored, err)
		}
	}
	if _, _, err := images.OwnArgs(nowhere(t), []string{"--addr=:6666"}, true); err == nil {
		t.Error("a port that is taken is listened on")
	}
}

func FuzzArgumentsOfAnOperatorInAPod(f *testing.F) {
	for _, text := range []string{"--metrics-addr\n:8080", "--leader-elect", "-addr=[::]:80\n--addr=:99999", "--addr", "--addr=", "-\n--\n="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		given := strings.Split(text, "\n")
		args, ignored, err := images.OwnArgs(nowhere(t), slices.Clone(given), false)
		if err == nil && len(args)+len(ignored) != len(given) {
			t.Errorf("%q becomes %q without %q", given, args, ignored)
		}
	})
}
