package images

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// etcdImage is the image of etcd. A member is a process of the binary, which runs upstream's etcd if it is called by
// that name. Its version is the one linked into the binary, whatever the tag of the image.
type etcdImage struct {
	guard   *guard.Guard
	binary  string
	scripts *foreground
}

func newEtcdImage(g *guard.Guard, binary string) etcdImage {
	return etcdImage{g, binary, newForeground()}
}

// The commands in the image.
const (
	etcdCommand    = "etcd"
	etcdctlCommand = "etcdctl"
	etcdutlCommand = "etcdutl"
)

// File implements [Program].
func (etcdImage) File(string) (string, bool) { return "", false }

// commands returns the commands that exec and scripts find in the image.
func (i etcdImage) commands(c *Container) Commands { return etcdTools{i, c} }

// Start implements [Program].
func (i etcdImage) Start(c *Container) (Running, error) {
	argv := slices.Concat(c.Command, c.Args)
	if len(argv) == 0 || strings.HasPrefix(argv[0], "-") {
		argv = append([]string{etcdCommand}, argv...)
	}
	if isEtcdTool(argv[0]) {
		return i.run(c, argv, environment(c, nil), c.WorkingDir)
	}
	if r := shell(c, c.Command); r != nil {
		return script{r, i.scripts, c.ID}, nil
	}
	return nil, &exec.Error{Name: argv[0], Err: exec.ErrNotFound}
}

// isEtcdTool reports whether a command is one of the image's.
func isEtcdTool(name string) bool {
	dir, base := path.Split(name)
	if !slices.Contains([]string{"", "/bin/", "/usr/bin/", "/usr/local/bin/"}, dir) {
		return false
	}
	return base == etcdCommand || base == etcdctlCommand || base == etcdutlCommand
}

// run starts a command of the image.
func (i etcdImage) run(c *Container, argv []string, given *variables, dir string) (Running, error) {
	env, err := overlay(c, given)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: i.binary, Dir: c.hostDir(dir)}
	switch name := path.Base(argv[0]); name {
	case etcdctlCommand:
		return i.control(c, cmd, argv[1:], env)
	case etcdutlCommand:
		cmd.Args = append([]string{name}, c.hostArguments(argv[1:])...)
	default:
		if isEtcdProxy(argv[1:]) {
			return i.proxy(c, cmd, argv[1:], env)
		}
		return i.member(c, cmd, argv[1:], env)
	}
	cmd.Env = env.list()
	return spawn(i.guard, c, cmd)
}

// member starts etcd itself.
func (i etcdImage) member(c *Container, cmd *exec.Cmd, args []string, env *variables) (Running, error) {
	s := readEtcd(c, args, env)
	if err := s.localize(); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.Stderr, "operator-lab: %s was asked for; a real etcd runs, whose version is %s\n", c.Image, version.Version)
	if len(s.dropped) > 0 {
		fmt.Fprintf(c.Stderr, "operator-lab: not used, since etcd %s does not know it: %s\n", version.Version, strings.Join(s.dropped, " "))
	}
	if len(s.listens) > 0 {
		fmt.Fprintf(c.Stderr, "operator-lab: on this machine %s\n", strings.Join(s.listens, ", "))
	}
	for _, note := range s.notes {
		fmt.Fprintf(c.Stderr, "operator-lab: %s\n", note)
	}
	cmd.Args = append([]string{etcdCommand}, s.arguments()...)
	cmd.Env = env.list()
	r, err := spawn(i.guard, c, cmd)
	if err != nil {
		return nil, err
	}
	return firstProcess{r}, nil
}

// firstProcess is etcd as process 1 of its container, where it exits with code 0 after SIGTERM or SIGINT. Where it is
// not process 1, as on this machine, the signal itself ends it.
type firstProcess struct{ Running }

// Code implements [Running].
func (p firstProcess) Code() int {
	switch code := p.Running.Code(); code {
	case killed(syscall.SIGTERM), killed(syscall.SIGINT):
		return 0
	default:
		return code
	}
}

// processes implements measurable.
func (p firstProcess) processes() (group int, begun bool) { return ProcessesOf(p.Running) }

// etcdTools are the commands of the image in a container.
type etcdTools struct {
	image     etcdImage
	container *Container
}

// Has implements [Commands].
func (t etcdTools) Has(name string) bool { return isEtcdTool(name) }

// Run implements [Commands].
func (t etcdTools) Run(
	ctx context.Context, argv, environ []string, dir string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	c := *t.container
	c.Stdin, c.Stdout, c.Stderr = stdin, stdout, stderr
	env := &variables{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env.set(name, value)
	}
	if p, is := readProbe(&c, argv, env); is {
		p.stdout, p.stderr = stdout, stderr
		if code, done := p.run(ctx); done {
			return code
		}
	}
	r, err := t.image.run(&c, argv, env, dir)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", argv[0], err)
		return 126
	}
	if member, is := r.(firstProcess); is {
		defer t.image.scripts.begin(c.ID, member)()
	}
	stop := context.AfterFunc(ctx, func() { r.Signal(syscall.SIGKILL) })
	defer stop()
	<-r.Done()
	return r.Code()
}
