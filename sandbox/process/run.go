package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/gate"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/pipe"
	"github.com/operator-lab/operator-lab/sandbox/remote"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// run is one run of an operator's program.
type run struct {
	operator *Operator
	command  Command
	options  lab.RunOptions

	gate    *gate.Gate
	socket  net.Listener
	output  *output
	pipe    *pipe.Pipe // what the program prints to; nil for one in a pod, whose node tells it
	program program
	linked  context.Context // ends the link with a program that goes on
	unlink  context.CancelFunc
	wait    func() error // returns when the program has ended
	served  sync.WaitGroup
	// released says that the gate stays open, because the program goes on.
	released bool
	closing  sync.Once

	done chan struct{} // closed when the program has ended
	err  error         // why; set before done is closed
}

// program is the program of a run: a group of processes, or one in a pod.
type program interface {
	Signal(s syscall.Signal)
	Kill()
}

// otherClients is added to the name of an operator with taps for what only the gate sees of it, and knows no reconcile of.
const otherClients = "-clients"

// start opens the gate and the socket and starts the program. With an error nothing is left of it.
func (r *run) start() (err error) {
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	config, err := r.identity()
	if err != nil {
		return err
	}
	name := r.operator.options.Name
	r.gate, err = gate.Open(gate.Options{Name: name, Cluster: config, Namespace: r.namespace()})
	if err != nil {
		return fmt.Errorf("open the gate of operator %s: %w", name, err)
	}
	kubeconfig := filepath.Join(r.operator.options.Files, "kubeconfig")
	if r.command.pod != nil { // another one may still use its own
		kubeconfig = filepath.Join(r.operator.options.Files, r.command.pod.ID)
	}
	if err := os.WriteFile(kubeconfig, r.gate.Kubeconfig(), 0o600); err != nil {
		return err
	}
	env := []string{"KUBECONFIG=" + kubeconfig}
	behind := gate.Run{Injector: r.options.Injector}
	var line func(string)
	switch t := r.options.Taps.(type) {
	case *remote.Taps:
		path, err := r.listen(t)
		if err != nil {
			return err
		}
		env = append(env, link.SocketVariable+"="+path)
		// What leaves the process without the link's header comes from a client that its managers did not make.
		others := taps.New(r.options.Journal, taps.Options{Operator: name + otherClients, Actor: name})
		behind.Wrap = func(next http.RoundTripper) http.RoundTripper { return others.Recorder(next, nil) }
		behind.ReconcileOf = func(header string) trace.ReconcileRef { return t.Resolve(context.Background(), header) }
		if r.operator.options.Line != nil {
			line = r.operator.options.Line(r.options.Journal)
		}
	case *taps.Taps:
		behind.Wrap = func(next http.RoundTripper) http.RoundTripper { return t.Recorder(next, r.drain) }
		line = t.LogLine
	}
	log, err := os.OpenFile(r.operator.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	r.output = &output{file: log, line: line}
	if r.command.pod == nil {
		if r.pipe, err = pipe.New(r.output.write); err != nil {
			return errors.Join(err, log.Close())
		}
	}
	r.gate.Use(behind)
	if err := r.startProgram(env); err != nil {
		r.pipe.Close()
		return errors.Join(err, log.Close())
	}
	go r.follow(log)
	return nil
}

// drain returns when all is taken that the program had printed when it was called.
func (r *run) drain() {
	if r.pipe == nil {
		r.command.pod.drain()
		return
	}
	r.pipe.Drain()
}

func (r *run) namespace() string {
	if r.command.Namespace == "" {
		return "default"
	}
	return r.command.Namespace
}

// identity returns the credentials with which the gate sends the program's requests.
func (r *run) identity() (*rest.Config, error) {
	if r.command.pod != nil {
		return r.command.pod.identity()
	}
	if r.command.ServiceAccount == "" {
		return r.options.Cluster.Config(), nil
	}
	return operatorhost.Account(r.options.Cluster, r.namespace(), r.command.ServiceAccount)
}

// listen waits for the program's connection on a socket, whose path it returns.
func (r *run) listen(t *remote.Taps) (path string, err error) {
	dir, err := r.operator.sockets()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "link")
	if r.socket, err = net.Listen("unix", path); err != nil {
		return "", err
	}
	r.served.Go(func() {
		conn, err := r.socket.Accept()
		if err != nil {
			return // closed before the program connected
		}
		defer context.AfterFunc(r.linked, func() { _ = conn.Close() })()
		err = t.Serve(conn, link.Settings{
			Operator: r.operator.options.Name, Namespace: r.namespace(), APIServer: r.gate.Address(),
			WebhookPort: r.command.WebhookPort, WebhookCertDir: r.command.WebhookCertDir,
			NoLeaderElection: r.command.NoLeaderElection || r.options.Private, // only one of the labs would have a leader
			InPod:            r.command.pod != nil,
		})
		if err != nil {
			r.note("the link to the program is broken: " + err.Error())
		}
	})
	return path, nil
}

// note puts a note into the journal.
func (r *run) note(text string) {
	name := r.operator.options.Name
	r.options.Journal.Append(trace.Event{Kind: trace.KindNote, Actor: name, Operator: name, Message: text})
}

// startProgram starts the program with the variables by which it finds the lab.
func (r *run) startProgram(env []string) (err error) {
	if pod := r.command.pod; pod != nil {
		r.program, r.wait = pod, pod.wait
		r.begun()
		r.note(pod.begins())
		pod.hears(r.output.write)
		pod.order(images.Order{Env: env, Listens: true})
		return nil
	}
	// The context of the lab is not that of the process: End lets it stop in order.
	cmd := exec.Command(r.command.Program, r.command.Args...) //nolint:noctx // End and the guard end it
	cmd.Dir, cmd.Env = r.command.Dir, slices.Concat(os.Environ(), env, r.command.Env)
	cmd.Stdout, cmd.Stderr = r.pipe.Into, r.pipe.Into
	group, err := r.operator.guard.Start(cmd)
	if err != nil {
		return &sandbox.Problem{
			Err:  fmt.Errorf("start %s: %w", r.command.Program, err),
			Hint: "is it a program that this machine can run?",
		}
	}
	r.operator.running.Store(group)
	r.program, r.wait = group, cmd.Wait
	r.begun()
	return nil
}

// begun is called when the program was started.
func (r *run) begun() {
	r.tell(trace.VerbStart)
	r.options.Injector.OnDie(func() {
		if !r.hasEnded() { // else a program in a pod may go on without the lab
			r.program.Kill()
		}
	})
}

// follow takes the program's output until it has ended.
func (r *run) follow(log *os.File) {
	if r.pipe != nil {
		r.served.Go(r.pipe.Follow)
	}
	err := r.wait()
	if errors.Is(err, errReplaced) {
		r.release()
	} else {
		r.program.Kill() // what the program has started ends with it
	}
	if r.pipe != nil {
		r.pipe.Drain()
		r.pipe.Close()
	}
	r.output.flush()
	_ = log.Close()
	r.close()
	r.err = r.why(err)
	r.tell(trace.VerbStop)
	close(r.done)
}

// tell puts the start or the stop of a program without taps into the journal; the taps tell it themselves.
func (r *run) tell(verb string) {
	if name := r.operator.options.Name; !r.operator.options.Tapped {
		e := trace.Event{Kind: trace.KindOperator, Actor: name, Operator: name, Verb: verb}
		if verb == trace.VerbStart && r.operator.options.Skip != nil {
			e.Reason = trace.ReasonPartly
		}
		r.options.Journal.Append(e)
	}
}

// why describes how the program ended by itself.
func (r *run) why(err error) error {
	if pod, is := errors.AsType[*podError](err); is {
		pod.last = LastWords(r.output.last())
		return pod
	}
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	return &Exit{How: how, Last: r.output.last()}
}

// close ends what belongs to the run besides the program.
func (r *run) close() {
	r.closing.Do(func() {
		if r.socket != nil {
			_ = r.socket.Close()
		}
		r.served.Wait() // the connection ended with the program, or by unlink
		r.unlink()
		if r.gate != nil && !r.released {
			_ = r.gate.Close()
		}
	})
}

// servePatience is how long a program may take until it is said to serve although it does not.
const servePatience = 20 * time.Second

// AwaitServing returns when the program's workers take keys; without taps, when it has asked the API server for
// something. A program that does neither for 20 s is said to serve too, with a note in the journal, so that one can see
// what it does instead; one that never asked is an error.
func (r *run) AwaitServing(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, servePatience)
	defer cancel()
	go func() {
		select {
		case <-r.done:
			cancel()
		case <-limited.Done():
		}
	}()
	begun := make(chan error, 1)
	go func() { begun <- r.operator.options.Begun(limited, r.options.Cluster) }()
	err := r.options.Taps.AwaitServing(limited)
	wrong := <-begun
	switch {
	case r.hasEnded() && r.command.pod != nil:
		return r.err
	case r.hasEnded():
		return &sandbox.Problem{
			Err: fmt.Errorf("the operator ended before it served: %w", r.err), Hint: "all that it printed is in " + r.operator.LogFile(),
		}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wrong != nil:
		return wrong
	case err == nil:
	case r.gate.Requests() == 0 && r.command.pod == nil:
		return &sandbox.Problem{
			Err:  fmt.Errorf("the program runs, but never asked the gate for anything in %v: %w", servePatience, &Exit{How: "it did not end", Last: r.output.last()}),
			Hint: "it has to take its cluster from the variable KUBECONFIG, and to start its manager; what it printed is in " + r.operator.LogFile(),
		}
	default:
		r.note(fmt.Sprintf("no worker takes keys after %v; its caches may not be filled: see its log", servePatience))
	}
	return nil
}

func (r *run) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Done returns a channel that is closed when the program has ended.
func (r *run) Done() <-chan struct{} { return r.done }

// Err returns why the program ended by itself; nil while it runs.
func (r *run) Err() error {
	if !r.hasEnded() {
		return nil
	}
	return r.err
}

// endPatience is how long the program may take to stop when it is asked to.
const endPatience = 10 * time.Second

// End asks the program to stop, and kills it if it does not in time, or if the run has crashed.
func (r *run) End() error {
	if r.hasEnded() {
		return nil
	}
	r.program.Signal(syscall.SIGTERM)
	select {
	case <-r.done:
		return nil
	case <-time.After(endPatience):
		r.program.Kill()
		<-r.done
		return fmt.Errorf("operator %s did not stop within %v of SIGTERM and was killed", r.operator.options.Name, endPatience)
	}
}
