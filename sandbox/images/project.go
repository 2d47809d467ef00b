package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// builder builds the projects that images are made of, one after the other.
type builder struct {
	binary string
	guard  *guard.Guard
	// work is a directory for the programs, which is removed with this process.
	work func() (string, error)
	mu   sync.Mutex
	seen map[string]Life // what is known of the programs that were built, by the project's directory
}

func newBuilder(binary string) *builder {
	work := sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "operator-lab-") })
	return &builder{binary: binary, work: work, guard: guard.New(guard.Options{Mark: "OPERATOR_LAB_BUILD", Temp: work}), seen: map[string]Life{}}
}

// file returns where the program of a project is once it is built.
func (b *builder) file(dir string) (string, error) {
	work, err := b.work()
	return filepath.Join(work, fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:16], "program"), err
}

// buildPatience is how long Go's own programs may take to end once a build is given up.
const buildPatience = 5 * time.Second

// build builds the project in a directory, as 'operator-lab build' does. The error has the words of the compiler.
func (b *builder) build(ctx context.Context, dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	file, err := b.file(dir)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return err
	}
	var said, out bytes.Buffer
	cmd := exec.Command(b.binary, "build", dir, "--to", file) //nolint:noctx // the guard ends it with all that it has started
	cmd.Args[0] = "operator-lab"
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &out, buildPatience
	group, err := b.guard.Start(cmd)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, group.Kill)()
	if err = cmd.Wait(); err == nil {
		var seen Life
		if err = json.Unmarshal(said.Bytes(), &seen); err == nil {
			b.seen[dir] = seen
		}
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	line, _, _ := strings.Cut(strings.TrimPrefix(out.String(), "error: "), "\n")
	if line == "" {
		return err
	}
	return errors.New(line)
}

// operator returns what the lab is told of an operator whose project in a directory is built.
func (b *builder) operator(name, dir string) *Life {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen[dir]
	seen.Operator = name
	return &seen
}

// built is an operator of the user's in a pod: pulling its image builds the project in a directory.
type built struct {
	process
	builder *builder
	dir     string
	name    string // of the operator
}

// Start implements [Program].
func (p built) Start(c *Container) (Running, error) {
	file, err := p.builder.file(p.dir)
	if err != nil {
		return nil, err
	}
	p.command, p.seen = []string{file}, p.builder.operator(p.name, p.dir)
	given := slices.Clone(c.Args)
	if len(c.Command) > 0 {
		given = slices.Concat(c.Command[1:], c.Args)
	}
	args, ignored, err := ownArgs(c, given, p.seen.Tapped)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.Stderr, "operator-lab: %s is the program built of %s, a process of this machine, as the pod's service account\n", c.Image, p.dir)
	if len(ignored) > 0 {
		fmt.Fprintf(c.Stderr, "operator-lab: not used, since outside of a cluster the program could not tell in which namespace: %s\n", strings.Join(ignored, " "))
	}
	in := *c
	in.Command, in.Args, in.Env = nil, args, nil
	mounts := map[string]string{}
	for _, m := range c.Mounts {
		at := path.Clean("/" + m.ContainerPath)
		mounts[at] = m.HostPath
		if at == tempDir || strings.HasPrefix(at, tempDir+"/") { // where controller-runtime looks for certificates
			p.env = append(slices.Clip(p.env), variable{"TMPDIR", "$(LAB_ROOT)" + tempDir})
		}
	}
	for i := range in.Args {
		in.Args[i] = ReplacePaths(in.Args[i], mounts)
	}
	for _, e := range c.Env {
		in.Env = append(in.Env, ReplacePaths(e, mounts))
	}
	if p.seen.Tapped {
		p.env = append(slices.Clip(p.env), variable{PodVariable, c.Namespace}, variable{hostVariable, "$(" + hostVariable + ")"},
			variable{webhookVariable, "$(" + webhookVariable + ")"})
	}
	return p.process.Start(&in)
}

// PodVariable is the variable that tells a program with the taps that it runs in a pod, and in which namespace, as
// [github.com/operator-lab/operator-lab/sandbox/link] has it. The program listens for webhooks where their port of the pod is on this
// machine: that of webhookVariable unless it says another.
const (
	PodVariable     = "OPERATOR_LAB_POD"
	webhookVariable = portVariable + "9443"
)

// tempDir is the directory for temporary files in a container.
const tempDir = "/tmp"

// ownArgs returns the arguments of a pod for an operator that is a process of this machine: addresses to listen on are
// those of the pod on this machine, and without the taps it elects no leader.
func ownArgs(c *Container, given []string, tapped bool) (args, ignored []string, err error) {
	for i := 0; i < len(given); i++ {
		arg := given[i]
		name, value, has := strings.Cut(arg, "=")
		name = strings.TrimLeft(name, "-")
		switch {
		case !strings.HasPrefix(arg, "-"):
		case !tapped && (name == "leader-elect" || name == "enable-leader-election"):
			ignored = append(ignored, arg)
			continue
		case strings.Contains(name, "addr") && has:
			if value, err = ownAddress(c, value); err != nil {
				return nil, nil, err
			}
			arg = arg[:strings.Index(arg, "=")+1] + value
		case strings.Contains(name, "addr") && i+1 < len(given):
			if value, err = ownAddress(c, given[i+1]); err != nil {
				return nil, nil, err
			}
			args = append(args, arg)
			i, arg = i+1, value
		}
		args = append(args, arg)
	}
	return args, ignored, nil
}

// ownAddress is [listenAddress] for an address that may also be somebody else's, which stays as it is.
func ownAddress(c *Container, address string) (string, error) {
	if host, _, err := net.SplitHostPort(address); err == nil && slices.Contains([]string{"", "0.0.0.0", "::", "127.0.0.1", "localhost"}, host) {
		return listenAddress(c, address)
	}
	return address, nil
}
