package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// stream does what the kubelet does for a client. It speaks SPDY to the streaming server.
func stream(t *testing.T, at string, o remotecommand.StreamOptions) error {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	return executor.StreamWithContext(t.Context(), o)
}

func (m *machine) exec(t *testing.T, q *runtimeapi.ExecRequest) string {
	t.Helper()
	r, err := m.Exec(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Url, "http://127.0.0.1:") {
		t.Errorf("it is at %s", r.Url)
	}
	return r.Url
}

func TestExec(t *testing.T) {
	m := newMachine(t)
	id, _ := m.start(t, "waits")
	var out, errs bytes.Buffer
	at := m.exec(t, &runtimeapi.ExecRequest{
		ContainerId: id, Cmd: []string{"sh", "-c", "cat; echo err >&2; exit 3"}, Stdin: true, Stdout: true, Stderr: true,
	})
	err := stream(t, at, remotecommand.StreamOptions{Stdin: strings.NewReader("input\n"), Stdout: &out, Stderr: &errs})
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 3 || out.String() != "input\n" || errs.String() != "err\n" {
		t.Errorf("%v, %q, %q", err, &out, &errs)
	}
	if err := stream(t, at, remotecommand.StreamOptions{Stdout: io.Discard}); err == nil {
		t.Error("the same URL was good twice")
	}
	at = m.exec(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"bash"}, Stdout: true, Stderr: true})
	err = stream(t, at, remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard})
	if err == nil || !strings.HasPrefix(err.Error(), "Internal error occurred: error executing command in container: failed to exec in container: ") ||
		!strings.HasSuffix(err.Error(), `exec: "bash": executable file not found in $PATH: unknown`) {
		t.Errorf("a missing command: %v", err)
	}
}

// sizes of a terminal; there is one.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	if size, ok := <-s; ok {
		return &size
	}
	return nil
}

func oneSize() sizes {
	s := make(sizes, 1)
	s <- remotecommand.TerminalSize{Width: 100, Height: 30}
	close(s)
	return s
}

func TestExecOnATerminal(t *testing.T) {
	m := newMachine(t)
	id, _ := m.start(t, "waits")
	in, keys := io.Pipe()
	defer func() { _ = keys.Close() }()
	s := &output.Output{}
	at := m.exec(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"sh"}, Stdin: true, Stdout: true, Tty: true})
	ended := make(chan error, 1)
	go func() {
		ended <- stream(t, at, remotecommand.StreamOptions{Stdin: in, Stdout: s, Tty: true, TerminalSizeQueue: oneSize()})
	}()
	s.Await(t, "/ # ")
	_, _ = io.WriteString(keys, "echo o''n $HOSTNAME; sleep infinity\r")
	s.Await(t, "on pod-waits\r\n")
	_, _ = io.WriteString(keys, "\x03exit 6\r")
	var exit utilexec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitStatus() != 6 {
		t.Errorf("%v, %q", err, s)
	}
}

// reads repeats what it reads.
func reads(t *task) int {
	_, _ = fmt.Fprintln(t.Stdout, "reading")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(t.Stdout, t.Container.Stdin)
	}()
	select {
	case <-ended:
		return 0
	case s := <-t.signals:
		return 128 + int(s)
	}
}

func TestAttach(t *testing.T) {
	m := newMachine(t)
	m.images["reads"] = images.Image{Program: image(reads)}
	for _, tty := range []bool{false, true} {
		t.Run(fmt.Sprint("tty=", tty), func(t *testing.T) {
			id, _ := m.start(t, "reads", func(c *runtimeapi.ContainerConfig) { c.Stdin, c.StdinOnce, c.Tty = true, true, tty })
			r, err := m.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: !tty, Tty: tty})
			if err != nil {
				t.Fatal(err)
			}
			in, keys := io.Pipe()
			s := &output.Output{}
			ended := make(chan error, 1)
			o := remotecommand.StreamOptions{Stdin: in, Stdout: s, Tty: tty}
			if tty {
				o.TerminalSizeQueue = oneSize()
			} else {
				o.Stderr = io.Discard
			}
			go func() { ended <- stream(t, r.Url, o) }()
			_, _ = io.WriteString(keys, "hel''lo\r\n")
			s.Await(t, "hel''lo")
			if tty {
				_, _ = io.WriteString(keys, "\x04")
			} else {
				_ = keys.Close()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if s := m.awaitExit(t, id); s.ExitCode != 0 {
				t.Errorf("status %v", s)
			}
			_ = keys.Close()
		})
	}
}

func TestAttachThatOnlyListens(t *testing.T) {
	m := newMachine(t)
	p, next := stepper(
		func(t *task) { _, _ = fmt.Fprintln(t.Stdout, "before") },
		func(t *task) { _, _ = fmt.Fprintln(t.Stdout, "out"); _, _ = fmt.Fprintln(t.Stderr, "err") },
	)
	m.images["writes"] = images.Image{Program: p}
	id, _ := m.start(t, "writes")
	next()
	r, err := m.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: id, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	out, errs := &output.Output{}, &output.Output{}
	ended := make(chan error, 1)
	go func() {
		ended <- stream(t, r.Url, remotecommand.StreamOptions{Stdout: out, Stderr: errs})
	}()
	eventually(t, "somebody is attached", func() error {
		if m.Attached(id) == 0 {
			return errors.New("nobody")
		}
		return nil
	})
	next()
	out.Await(t, "out\n")
	errs.Await(t, "err\n")
	if strings.Contains(out.String(), "before") {
		t.Error("what was written before is shown")
	}
	if err := m.StopContainer(t.Context(), id, 30); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestPortForward(t *testing.T) {
	m := newMachine(t)
	m.images["page"] = images.Image{Program: page("forwarded\n")}
	id, pod := m.start(t, "page")
	eventually(t, "it listens", func() error {
		_, err := m.sh(t, id, "nc -z localhost 8080")
		return err
	})
	forward := func(port int) (text string, err error) {
		r, err := m.PortForward(t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: pod, Port: []int32{int32(port)}})
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(r.Url)
		if err != nil {
			t.Fatal(err)
		}
		transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		forwarder, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u),
			[]string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- forwarder.ForwardPorts() }()
		<-ready
		ports, err := forwarder.GetPorts()
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local), nil)
		response, err := client.Do(request)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			text = string(body)
		}
		close(stop)
		if err := <-ended; err != nil {
			t.Log(err) // that the connection was lost, after an error
		}
		return text, err
	}
	if text, err := forward(8080); err != nil || text != "forwarded\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := forward(81); err == nil {
		t.Errorf("a port that nobody listens on answers %q", text)
	}
}

func TestCloseEndsStreams(t *testing.T) {
	m := newMachine(t)
	id, _ := m.start(t, "waits")
	ended := make(chan error, 1)
	s := &output.Output{}
	at := m.exec(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"sh", "-c", "echo begun; sleep infinity"}, Stdout: true, Stderr: true})
	go func() { ended <- stream(t, at, remotecommand.StreamOptions{Stdout: s, Stderr: io.Discard}) }()
	s.Await(t, "begun")
	if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Log("the client heard:", <-ended) // how it ended, or that the connection was cut
}

// TestAShellThatIsTheContainer is kubectl run -it.
func TestAShellThatIsTheContainer(t *testing.T) {
	m := newMachine(t)
	m.images["tools"] = images.Image{Program: image(func(t *task) int {
		return t.Shell.Run(t.life, []string{"sh"}, t.Container.Stdin, t.Stdout, t.Stderr)
	})}
	id, _ := m.start(t, "tools", func(c *runtimeapi.ContainerConfig) { c.Stdin, c.StdinOnce, c.Tty = true, true, true })
	r, err := m.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatal(err)
	}
	in, keys := io.Pipe()
	s := &output.Output{}
	ended := make(chan error, 1)
	go func() {
		ended <- stream(t, r.Url, remotecommand.StreamOptions{Stdin: in, Stdout: s, Tty: true, TerminalSizeQueue: oneSize()})
	}()
	_, _ = io.WriteString(keys, "echo o''n $HOSTNAME; sleep infinity\r")
	s.Await(t, "on pod-tools\r\n")
	_, _ = io.WriteString(keys, "\x03")
	s.Await(t, "/ # ")
	_, _ = io.WriteString(keys, ")\r")
	s.Await(t, "sh: syntax error")
	_, _ = io.WriteString(keys, "exit 4\r")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s := m.awaitExit(t, id); s.ExitCode != 4 {
		t.Errorf("status %v", s)
	}
	_ = keys.Close()
}
