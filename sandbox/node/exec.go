package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/node/shell"
)

// maxOutput is the maximum output in bytes of a command run by ExecSync, as in containerd.
const maxOutput = 16 << 20

// shellContainer returns what commands in a container can reach.
func (r *Runtime) shellContainer(c *container) *shell.Container {
	user := c.config.GetLinux().GetSecurityContext()
	return &shell.Container{
		Files: c.files, Dial: c.pod.network.DialContext, Lookup: lookupOf(c.pod.network),
		Env: c.given.Env, Dir: c.given.WorkingDir,
		Hostname: c.hostname(), IP: c.pod.ip,
		UID: user.GetRunAsUser().GetValue(), GID: user.GetRunAsGroup().GetValue(),
		Signal: c.signal, Program: c.title(), Stdout: c.stdout, Stderr: c.given.Stderr,
		Commands: images.CommandsOf(c.program, c.given),
	}
}

// lookupOf returns the network's LookupHost method; nil if it has none.
func lookupOf(network any) func(context.Context, string) ([]string, error) {
	if n, ok := network.(interface {
		LookupHost(ctx context.Context, name string) ([]string, error)
	}); ok {
		return n.LookupHost
	}
	return nil
}

// title returns the text for the program in a list of processes.
func (c *container) title() string {
	if argv := append(c.config.GetCommand()[:len(c.config.GetCommand()):len(c.config.GetCommand())],
		c.config.GetArgs()...); len(argv) > 0 {
		return strings.Join(argv, " ")
	}
	return c.given.Image
}

// shellOf is the images.Shell of a container.
type shellOf struct {
	runtime   *Runtime
	container *container
}

// Has reports whether the container has a command.
func (s shellOf) Has(name string) bool { return s.runtime.shellContainer(s.container).Has(name) }

// Run runs a command.
func (s shellOf) Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) int {
	commands := s.runtime.shellContainer(s.container)
	if s.container.config.GetTty() && stdin != nil {
		commands.Foreground = s.container.foreground
	}
	return commands.Run(ctx, argv, stdin, stdout, stderr)
}

// enter finds a running container and lets the context end with it.
func (r *Runtime) enter(ctx context.Context, id string) (*container, context.Context, context.CancelFunc, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, nil, nil, err
	}
	if state := c.now(); state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, nil, nil, status.Errorf(codes.Unknown, "container is in %v state", state)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.done:
		case <-r.closed:
		case <-ctx.Done():
		}
		cancel()
	}()
	return c, ctx, cancel, nil
}

// missing returns containerd's error for a command that a container does not have.
func missing(argv []string) error {
	name := ""
	if len(argv) > 0 {
		name = argv[0]
	}
	what := fmt.Sprintf("exec: %q: executable file not found in $PATH", name)
	if strings.Contains(name, "/") {
		what = fmt.Sprintf("exec: %q: stat %s: no such file or directory", name, name)
	}
	return fmt.Errorf("failed to exec in container: failed to start exec %q: OCI runtime exec failed: exec failed: "+
		"unable to start container process: %s: unknown", newID(), what)
}

// ExecSync runs a command and waits for it. The kubelet uses it for exec probes and hooks. [ProbeCommand] is handled
// separately.
func (r *Runtime) ExecSync(
	ctx context.Context, id string, argv []string, timeout time.Duration,
) (stdout, stderr []byte, err error) {
	c, ctx, cancel, err := r.enter(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	defer cancel()
	// A probe enforces its timeout itself, to report it in upstream's words.
	if len(argv) > 0 && argv[0] == ProbeCommand {
		return r.probe(ctx, c, argv, timeout)
	}
	if timeout > 0 {
		limited, stop := context.WithTimeout(ctx, timeout)
		defer stop()
		ctx = limited
	}
	commands := r.shellContainer(c)
	if len(argv) == 0 || !commands.Has(argv[0]) {
		return nil, nil, status.Error(codes.Unknown, missing(argv).Error())
	}
	var out, errs bounded
	code := commands.Run(ctx, argv, nil, &out, &errs)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, nil, fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(argv, " "), timeout)
	case out.full || errs.full:
		return nil, nil, status.Errorf(codes.ResourceExhausted, "the command wrote more than %d bytes", maxOutput)
	}
	return out.buffer.Bytes(), errs.buffer.Bytes(), exited(argv, code, errs.buffer.String())
}

// exited is nil of a command that succeeded.
func exited(argv []string, code int, stderr string) error {
	if code == 0 {
		return nil
	}
	return utilexec.CodeExitError{
		Err:  fmt.Errorf("command '%s' exited with %d: %s", strings.Join(argv, " "), code, stderr),
		Code: code,
	}
}

// bounded is a buffer that refuses more than maxOutput bytes. The buffer is not embedded, because its other methods
// would write past the limit.
type bounded struct {
	buffer bytes.Buffer
	full   bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buffer.Len()+len(p) > maxOutput {
		b.full = true
		return 0, syscall.EFBIG
	}
	return b.buffer.Write(p)
}
