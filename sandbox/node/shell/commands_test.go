package shell_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
	"github.com/operator-lab/operator-lab/sandbox/node/shell"
)

// ofImage is an image with one command, which prints its arguments, and counts the bytes of its input.
type ofImage struct{}

func (ofImage) Has(name string) bool { return name == "etcdctl" }

func (ofImage) Run(ctx context.Context, argv, environment []string, dir string, in io.Reader, out, _ io.Writer) int {
	if slices.Contains(argv, "wait") {
		<-ctx.Done()
		return 137
	}
	text, _ := io.ReadAll(in)
	set := slices.DeleteFunc(slices.Clone(environment), func(e string) bool { return !strings.HasPrefix(e, "ETCDCTL") })
	fmt.Fprintf(out, "%q %q %s %d\n", argv, set, dir, len(text))
	return len(argv)
}

func TestCommandsOfAnImage(t *testing.T) {
	t.Parallel()
	container := &shell.Container{Files: rootfs.New(rootfs.Options{Scratch: t.TempDir()}), Commands: ofImage{}}
	for script, want := range map[string]string{
		"ETCDCTL_API=3 etcdctl get a; echo $?":                               `["etcdctl" "get" "a"] ["ETCDCTL_API=3"] / 0` + "\n3\n",
		"export ETCDCTL_API=2; cd /tmp; /usr/local/bin/etcdctl":              `["/usr/local/bin/etcdctl"] ["ETCDCTL_API=2"] /tmp 0` + "\n",
		"echo hello | etcdctl put | cat":                                     `["etcdctl" "put"] [] / 6` + "\n",
		"which etcdctl; command -v etcdctl; [ -x /bin/etcdctl ] && echo yes": "/bin/etcdctl\n/bin/etcdctl\nyes\n",
		"timeout 0.01 etcdctl wait; echo $?":                                 "143\n",
		"env ETCDCTL_X=1 etcdctl":                                            `["etcdctl"] ["ETCDCTL_X=1"] / 0` + "\n",
		"exec etcdctl; echo never":                                           `["etcdctl"] [] / 0` + "\n",
		"etcdutl || echo $?":                                                 "127\n",
	} {
		var out bytes.Buffer
		container.Run(t.Context(), []string{"sh", "-c", script}, nil, &out, io.Discard)
		if out.String() != want {
			t.Errorf("%s: it says\n%s, not\n%s", script, out.String(), want)
		}
	}
	if !container.Has("/bin/etcdctl") || container.Has("/opt/etcdctl") || (&shell.Container{}).Has("etcdctl") {
		t.Error("the command is not where it should be")
	}
}
