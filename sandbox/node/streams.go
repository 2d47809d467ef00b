package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// streams is the server to which the kubelet forwards exec, attach and port-forward. It listens on 127.0.0.1, and its
// URLs contain a random token that can be used once.
type streams struct {
	server streaming.Server
	http   *http.Server
	ended  chan struct{}
	// stopped is closed to end the streams over connections that the server no longer tracks.
	stopped chan struct{}
	once    sync.Once
	// open are streams at work.
	open sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Streams take their connections over, and the server then does not know them any more: they are noted here.
type (
	tracking struct {
		net.Listener
		streams *streams
	}
	tracked struct {
		net.Conn
		streams *streams
	}
)

func (l tracking) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &tracked{conn, l.streams}
	l.streams.mu.Lock()
	defer l.streams.mu.Unlock()
	l.streams.conns[c] = true
	return c, nil
}

func (c *tracked) Close() error {
	c.streams.mu.Lock()
	delete(c.streams.conns, c)
	c.streams.mu.Unlock()
	return c.Conn.Close()
}

// closeConns closes the tracked connections.
func (s *streams) closeConns() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

func serveStreams(r *Runtime) (*streams, error) {
	// The library's own Start does not report the port that it uses.
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr, Path: "/"}
	s := &streams{ended: make(chan struct{}), stopped: make(chan struct{}), conns: map[net.Conn]bool{}}
	if s.server, err = streaming.NewServer(config, streamRuntime{r, s}); err != nil {
		_ = listener.Close()
		return nil, err
	}
	s.http = &http.Server{Handler: s.server}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(tracking{listener, s}) // until it is closed
	}()
	return s, nil
}

// stop ends all streams and returns when they have ended.
func (s *streams) stop() error {
	s.once.Do(func() { close(s.stopped) })
	err := s.http.Close()
	<-s.ended
	s.closeConns()
	s.open.Wait()
	return err
}

// Exec returns where a command can be run.
func (r *Runtime) Exec(_ context.Context, q *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if err := r.mustRun(q.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.server.GetExec(q)
}

// Attach returns where the container's streams are.
func (r *Runtime) Attach(_ context.Context, q *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if err := r.mustRun(q.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.server.GetAttach(q)
}

func (r *Runtime) mustRun(id string) error {
	c, err := r.container(id)
	if err != nil {
		return status.Errorf(codes.NotFound, "failed to find container %q in store: not found", id)
	}
	if state := c.now(); state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return status.Errorf(codes.Unknown, "container is in %v state", state)
	}
	return nil
}

// PortForward returns where a pod's ports are.
func (r *Runtime) PortForward(
	_ context.Context, q *runtimeapi.PortForwardRequest,
) (*runtimeapi.PortForwardResponse, error) {
	p, err := r.pod(q.GetPodSandboxId())
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "failed to find sandbox %q: not found", q.GetPodSandboxId())
	}
	if p.state() != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil, status.Error(codes.Unknown, "sandbox container is not running")
	}
	return r.streams.server.GetPortForward(q)
}

// streamRuntime implements the calls of the streaming server.
type streamRuntime struct {
	runtime *Runtime
	streams *streams
}

// begin lets the context end with the server, too. The caller calls done.
func (s streamRuntime) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.streams.open.Add(1)
	go func() {
		select {
		case <-s.streams.stopped:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, func() {
		cancel()
		s.streams.open.Done()
	}
}

// Exec runs a command.
func (s streamRuntime) Exec(
	ctx context.Context, id string, argv []string, in io.Reader, out, errs io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize,
) error {
	ctx, done := s.begin(ctx)
	defer done()
	c, ctx, cancel, err := s.runtime.enter(ctx, id)
	if err != nil {
		return err
	}
	defer cancel()
	commands := s.runtime.shellContainer(c)
	if len(argv) == 0 || !commands.Has(argv[0]) {
		return missing(argv)
	}
	var signalled atomic.Bool
	send := commands.Signal
	commands.Signal = func(to syscall.Signal) {
		signalled.Store(true)
		send(to)
	}
	var code int
	if tty {
		code = commands.RunOnTerminal(ctx, argv, terminal(in, out), sizes(ctx, resize))
	} else {
		code = commands.Run(ctx, argv, in, orNothing(out), orNothing(errs))
	}
	return exited(argv, c.codeOf(code, signalled.Load()), "")
}

// codeOf returns the exit code of a command that has returned code. If the container has ended meanwhile, the command has died with it,
// unless it has sent the signal that ended it, and so has done what it was to do.
func (c *container) codeOf(code int, signalled bool) int {
	select {
	case <-c.done:
		if code != 0 || !signalled {
			return 128 + 9
		}
	default:
	}
	return code
}

// orNothing replaces a nil stream by one that discards everything: an interface that holds a nil stream is not nil
// itself.
func orNothing(w io.WriteCloser) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// PortForward connects a stream with a port of a pod, as it is reached within the pod.
func (s streamRuntime) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	ctx, done := s.begin(ctx)
	defer done()
	p, err := s.runtime.pod(id)
	if err != nil {
		return err
	}
	conn, err := p.network.DialContext(ctx, "tcp4", fmt.Sprintf("localhost:%d", port))
	if err != nil {
		return fmt.Errorf("failed to execute portforward in network namespace of sandbox %q: failed to connect to "+
			"localhost:%d inside namespace %q: %w", id, port, id, err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	return forward(stream, conn)
}

// forward copies in both directions, until the pod's side has ended or the client no longer reads.
func forward(stream io.ReadWriteCloser, conn net.Conn) error {
	errs := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, stream)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
		}
		errs <- err
	}()
	_, err := io.Copy(stream, conn)
	_ = stream.Close()
	_ = conn.Close()
	// The other direction ends with its stream, which belongs to the library and cannot be ended sooner.
	select {
	case up := <-errs:
		err = errors.Join(err, up)
	default:
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
