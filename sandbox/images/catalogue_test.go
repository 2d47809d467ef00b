package images_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

func TestAnUnknownImageWaitsAndSaysSo(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	image := lookup(t, c, "example.com/some/thing:v1")
	if !image.Simulated || image.Entry != "" || image.Name != "example.com/some/thing:v1" || image.Pull.Error != "" {
		t.Errorf("%+v", image)
	}
	in, log := container(t, "example.com/some/thing:v1")
	in.Command, in.Args = []string{"/manager"}, []string{"--leader-elect"}
	r := start(t, c, in)
	log.Await(t, "example.com/some/thing:v1 is simulated: no program is known for this image")
	log.Await(t, "not run: /manager --leader-elect")
	r.Signal(syscall.SIGHUP)
	r.Signal(syscall.SIGTERM)
	if code := exit(t, r); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	r.Signal(syscall.SIGKILL) // after the end
	r.Signal(syscall.SIGTERM)
	if _, err := c.Lookup("Not An Image"); err == nil {
		t.Error("a name that is none is looked up")
	}
}

func TestCommandsThatAreBuiltInAreRun(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	for _, x := range []struct {
		image         string
		command, args []string
		log           string
		code          int
		fails         string
	}{
		{image: "busybox", command: []string{"echo"}, args: []string{"a", "b"}, log: "a b\n"},
		{image: "busybox", args: []string{"echo", "c"}, log: "c\n"}, // kubectl run busybox -- echo c
		{image: "alpine:3", command: []string{"false"}, code: 1},
		{image: "busybox", command: []string{"foo"}, fails: `exec: "foo": executable file not found in $PATH`},
		{image: "busybox", args: []string{"bar"}, fails: `exec: "bar": executable file not found in $PATH`},
		{image: "curlimages/curl", args: []string{"http://a"}, fails: `exec: "curl": executable file not found in $PATH`},
		{image: "unknown/image", command: []string{"echo", "d"}, log: "d\n"},
		{image: "nginx", command: []string{"echo", "e"}, log: "e\n"},
		{image: "quay.io/daein/maintpage-operator:v0.0.1", command: []string{"echo", "f"}, log: "f\n"},
	} {
		in, log := container(t, x.image)
		in.Command, in.Args = x.command, x.args
		r, err := lookup(t, c, x.image).Program.Start(in)
		if x.fails != "" {
			if err == nil || err.Error() != x.fails {
				t.Errorf("%s %q: %v, want %s", x.image, x.command, err, x.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", x.image, x.command, err)
			continue
		}
		if code := exit(t, r); code != x.code || log.String() != x.log {
			t.Errorf("%s %q exits with %d and says %q", x.image, x.command, code, log)
		}
	}
}

func TestTheFirstProcessOfAContainerDiesOfNothingButSIGKILL(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "")
	in, _ := container(t, "busybox")
	in.Command = []string{"sleep", "3600"}
	r := start(t, c, in)
	r.Signal(syscall.SIGTERM)
	select {
	case <-r.Done():
		t.Error("sleep handles SIGTERM")
	case <-time.After(20 * time.Millisecond):
	}
	r.Signal(syscall.SIGKILL)
	if code := exit(t, r); code != 137 {
		t.Errorf("it exits with %d", code)
	}
}

func TestTheTagNotfoundIsNotFound(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, `images:
- {name: quay.io/daein/prodpage, page: mine}
- {name: "here:notfound", page: here}
- {name: private, pullError: unauthorized, pullDelay: 3s}
- {name: slow, page: x, pullDelay: 2s}
`)
	const want = `failed to pull and unpack image "quay.io/daein/prodpage:notfound": ` +
		`failed to resolve reference "quay.io/daein/prodpage:notfound": quay.io/daein/prodpage:notfound: not found`
	for image, pull := range map[string]images.Pull{
		"quay.io/daein/prodpage:notfound": {Error: want},
		"quay.io/daein/prodpage:latest":   {},
		"here:notfound":                   {},
		"private:v1":                      {Error: "unauthorized", Delay: 3 * time.Second},
		"slow":                            {Delay: 2 * time.Second},
		"slow:notfound": {
			Error: strings.ReplaceAll(want, "quay.io/daein/prodpage", "docker.io/library/slow"), Delay: 2 * time.Second,
		},
	} {
		if got := lookup(t, c, image).Pull; got != pull {
			t.Errorf("%s: %+v, want %+v", image, got, pull)
		}
	}
}

func TestAFileIsReadAgainWhenItHasChanged(t *testing.T) {
	t.Parallel()
	c, file := catalogue(t, "images: [{name: a, page: one}]")
	index := func() string {
		text, _ := lookup(t, c, "a").Program.File("/var/www/html/index.html")
		return text
	}
	if got := index(); got != "one" {
		t.Error(got)
	}
	write(t, file, "images: [{name: a, page: two}]") // as long, and maybe in the same tick of the clock
	if got := index(); got != "two" || c.Err() != nil {
		t.Error(got)
	}
	write(t, file, "images: [{name: a, pag: three}]")
	if got := index(); got != "two" {
		t.Errorf("a broken file has an effect: %q", got)
	}
	if err := c.Err(); err == nil || err.Error() != file+`:1:20: unknown key "pag"` {
		t.Errorf("it is told as %v", err)
	}
	_ = index()
	if err := c.Err(); err != nil {
		t.Errorf("it is told twice: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := index(); got != "two" {
		t.Errorf("without the file it is %q", got)
	}
	if err := c.Err(); err == nil || err.Error() != file+": no such file or directory" {
		t.Errorf("it is told as %v", err)
	}
	write(t, file, "images: []")
	if image := lookup(t, c, "a"); !image.Simulated || c.Err() != nil {
		t.Errorf("%+v", image)
	}
}

func TestABrokenFileAtTheStartIsRefusedAndCanBeMended(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "images.yaml")
	for _, content := range []string{"", "images", "images: [{name: a}]"} {
		write(t, file, content)
		if _, err := images.NewCatalogue("", file); err == nil {
			t.Errorf("%q is no error at the start", content)
		}
	}
	c, err := images.NewCatalogue("", file)
	if err == nil || c.Err() != nil {
		t.Errorf("it is told as %v, and again", err)
	}
	if image := lookup(t, c, "nginx"); image.Simulated {
		t.Error("what is bundled is not there")
	}
	write(t, file, "images: [{name: a, page: x}]")
	if image := lookup(t, c, "a"); image.Simulated || image.Entry != "a" || c.Err() != nil {
		t.Errorf("it is not mended: %+v", image)
	}
}

func TestACatalogueIsUsedByMany(t *testing.T) {
	t.Parallel()
	c, file := catalogue(t, "images: [{name: a, wait: true}]")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 50 {
				if i == 0 {
					_ = os.WriteFile(file, []byte("images: [{name: a, wait: true}, {name: b, page: x}]"), 0o600)
					_ = c.Err()
				}
				if _, err := c.Lookup("a"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestADelayIsPartOfTheProgram(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, `images:
- {name: late, page: x, startDelay: 30ms}
- {name: never, page: x, startDelay: 1h}
- {name: gone, command: [no-such-program], startDelay: 1ms}
`)
	in, log := container(t, "late")
	late := start(t, c, in)
	log.Await(t, "serves")
	late.Signal(syscall.SIGTERM)
	if code := exit(t, late); code != 0 {
		t.Errorf("late exits with %d", code)
	}
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGKILL: 137} {
		in, log = container(t, "never")
		never := start(t, c, in)
		never.Signal(signal)
		if code := exit(t, never); code != want || log.String() != "" {
			t.Errorf("never exits with %d after %d: %s", code, signal, log)
		}
	}
	in, log = container(t, "gone")
	if code := exit(t, start(t, c, in)); code != 127 {
		t.Errorf("gone exits with %d", code)
	}
	log.Await(t, "executable file not found in $PATH")
}

func TestWhomImagesRunAs(t *testing.T) {
	t.Parallel()
	c, _ := catalogue(t, "images: [{name: mine, wait: true}]")
	for image, root := range map[string]bool{
		"nginx": true, "busybox": true, "mine": false, "unknown": false, "kaitoy/zundoko-operator": false,
		"quay.io/daein/prodpage": false, "nginxinc/nginx-unprivileged": false,
	} {
		if user := lookup(t, c, image).User; (user == 0) != root {
			t.Errorf("%s runs as %d", image, user)
		}
	}
}
