package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/gate"
	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/taps"
)

// Pods are the operators of a lab whose programs run in pods: those that an images file builds of a project, and its commands that
// it says are operators. A node asks before it starts such a program, which then is one life of the operator: it is given a gate
// and, if it has the taps, a link, as a process of the lab's is. The kubelet starts it again. OLM's operators, which are programs of
// the sandbox, ask the same way.
type Pods struct {
	lab      *lab.Lab
	listener net.Listener
	// dir is a private directory, and file names the socket in it to the nodes.
	dir, file string
	serving   sync.WaitGroup

	mu        sync.Mutex
	operators map[string]*podOperator
	open      map[net.Conn]struct{}
	closed    bool
}

// podOperator is an operator in pods. Its containers wait in arriving.
type podOperator struct {
	*Operator
	podless  bool // its program is one of the sandbox
	arriving chan *pod
	next     *pod // that has come while another one ran
}

// pod is a program in a pod.
type pod struct {
	images.Life
	operator *podOperator
	ended    chan struct{} // closed when the program has ended
	code     int           // its exit code; set before ended is closed

	mu    sync.Mutex // held while something is sent
	conn  net.Conn
	asked int64 // how often the node was asked for what the program had printed

	hearing sync.Mutex              // held while it is taken what the node tells
	heard   func([]byte)            // takes what the program prints; nil: nobody does
	waiting map[int64]chan struct{} // those that have asked, by the number of what they have asked for
}

// OpenPods has a lab see the operators in the pods of a sandbox, whose directory is given, if the lab knows of any. Close it after
// the lab.
func OpenPods(l *lab.Lab, sandboxDir string) (*Pods, error) {
	if len(l.InPods()) == 0 {
		return &Pods{}, nil
	}
	dir, err := os.MkdirTemp("", "operator-lab-")
	if err != nil {
		return nil, err
	}
	p := &Pods{lab: l, dir: dir, file: sandbox.LabFile(sandboxDir), operators: map[string]*podOperator{}, open: map[net.Conn]struct{}{}}
	socket := filepath.Join(dir, "pods")
	if p.listener, err = net.Listen("unix", socket); err == nil {
		err = os.WriteFile(p.file, []byte(socket), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("see the operators in pods: %w", err), p.Close())
	}
	p.serving.Go(p.accept)
	return p, nil
}

// Close kills the operators' programs; those that the kubelet starts again are seen no more.
func (p *Pods) Close() error {
	errs := []error{os.RemoveAll(p.file)}
	p.mu.Lock()
	p.closed = true
	if p.listener != nil {
		errs = append(errs, p.listener.Close())
	}
	for conn := range p.open {
		_ = conn.Close() // it may have ended
	}
	p.mu.Unlock()
	p.serving.Wait()
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// accept serves the connections of nodes.
func (p *Pods) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.open[conn] = struct{}{}
		if p.closed {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.serving.Go(func() {
			p.serve(conn)
			_ = conn.Close()
			p.mu.Lock()
			delete(p.open, conn)
			p.mu.Unlock()
		})
	}
}

// serve follows a program in a pod until it has ended.
func (p *Pods) serve(conn net.Conn) {
	c := newPod(conn)
	in := json.NewDecoder(conn)
	if in.Decode(&c.Life) != nil {
		return
	}
	var err error
	if c.operator, err = p.operator(c.Life); err == nil {
		err = p.lab.Adopt(c.operator)
	}
	if err != nil {
		c.order(images.Order{Note: "not seen by the lab: " + err.Error()})
	} else {
		p.serving.Go(func() { p.bring(c) })
	}
	c.follow(in)
}

// newPod returns a program in a pod whose node is at the other end of a connection.
func newPod(conn net.Conn) *pod {
	return &pod{ended: make(chan struct{}), conn: conn, code: 128 + int(syscall.SIGKILL), waiting: map[int64]chan struct{}{}}
}

// follow takes what the node tells, until the program has ended.
func (c *pod) follow(in *json.Decoder) {
	defer close(c.ended)
	for {
		var told images.Report
		if in.Decode(&told) != nil {
			return
		}
		c.take(told)
		if told.Ended {
			c.code = told.Code
			return
		}
	}
}

// take takes what the node tells of the program.
func (c *pod) take(told images.Report) {
	c.hearing.Lock()
	defer c.hearing.Unlock()
	if c.heard != nil && len(told.Printed) > 0 {
		c.heard(told.Printed)
	}
	if waits := c.waiting[told.Drained]; waits != nil {
		close(waits)
		delete(c.waiting, told.Drained)
	}
}

// hears says who takes what the program prints; nil: nobody does any more.
func (c *pod) hears(heard func([]byte)) {
	c.hearing.Lock()
	defer c.hearing.Unlock()
	c.heard = heard
}

// drain returns when all is taken that the program had printed when it was called, or the program has ended.
func (c *pod) drain() {
	if c.hasEnded() {
		return
	}
	drained := make(chan struct{})
	c.mu.Lock()
	c.asked++
	asked := c.asked
	c.mu.Unlock()
	c.hearing.Lock()
	c.waiting[asked] = drained
	c.hearing.Unlock()
	c.order(images.Order{Drain: asked})
	select {
	case <-drained:
	case <-c.ended:
	}
}

// adoptPause is how often an operator is adopted anew while a program of it waits: an epoch may have ended.
const adoptPause = time.Second

// bring gives a program that waits to a run of its operator.
func (p *Pods) bring(c *pod) {
	again := time.NewTicker(adoptPause)
	defer again.Stop()
	for {
		select {
		case c.operator.arriving <- c:
			return
		case <-c.ended:
			return
		case <-again.C:
			_ = p.lab.Adopt(c.operator) // it could be done before
		}
	}
}

// operator returns the operator that a program is of.
func (p *Pods) operator(life images.Life) (*podOperator, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	op := p.operators[life.Operator]
	switch {
	case op != nil && op.options.Tapped == life.Tapped:
		return op, nil
	case op != nil:
		return nil, fmt.Errorf("another image has an operator %s, with or without taps", life.Operator)
	case life.Pod == "" && !slices.Contains(p.lab.InPods(), life.Operator):
		return nil, fmt.Errorf("it does not ask for %s", life.Operator)
	}
	dir := filepath.Join(p.dir, life.Operator)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	op = &podOperator{arriving: make(chan *pod), podless: life.Pod == ""}
	options := Options{Name: life.Operator, Tapped: life.Tapped, Files: dir, Prepare: op.take}
	if op.podless {
		options.Skip = operatorhost.BesideOLM()
	}
	op.Operator = New(options)
	op.sockets = func() (string, error) { return dir, nil }
	p.operators[life.Operator] = op
	return op, nil
}

// Waits implements [lab.Waiting].
func (o *podOperator) Waits() string {
	if o.podless {
		return "its program has not begun yet"
	}
	return "no pod of it serves yet"
}

// take waits for a program and returns it as a run of the operator.
func (o *podOperator) take(ctx context.Context, _ operatorhost.Cluster) (Command, error) {
	c := o.next
	o.next = nil
	for c == nil || c.hasEnded() {
		select {
		case c = <-o.arriving:
		case <-ctx.Done():
			return Command{}, context.Cause(ctx)
		}
	}
	return Command{Namespace: c.Namespace, pod: c}, nil
}

func (c *pod) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// errReplaced says that another program of the operator has come, while this one goes on.
var errReplaced = errors.New("a newer pod's program has begun")

// podError says why a run in a pod is over.
type podError struct {
	pod  *pod
	err  error  // errReplaced; nil: the program has ended
	last string // what it printed at last; empty: nothing
}

// RestartAfter returns 0: the kubelet starts the program again.
func (*podError) RestartAfter() time.Duration { return 0 }

func (e *podError) Unwrap() error { return e.err }

func (e *podError) Error() string {
	if e.err != nil {
		return fmt.Sprintf("%v; that of pod %s/%s goes on, seen only at the gate and without faults", e.err, e.pod.Namespace, e.pod.Pod)
	}
	if e.pod.Pod == "" {
		return "the program has ended"
	}
	text := fmt.Sprintf("the program in pod %s/%s ended with exit code %d", e.pod.Namespace, e.pod.Pod, e.pod.code)
	if e.last != "" {
		text += "; it printed: " + e.last
	}
	return text
}

// wait returns when the program has ended, or another one of its operator has come.
func (c *pod) wait() error {
	select {
	case c.operator.next = <-c.operator.arriving:
		return &podError{pod: c, err: errReplaced}
	case <-c.ended:
		return &podError{pod: c}
	}
}

// identity returns the credentials of the pod's service account, or of the program.
func (c *pod) identity() (*rest.Config, error) {
	if c.Kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	}
	return &rest.Config{Host: c.APIServer, BearerTokenFile: c.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: c.CA}}, nil
}

// begins says that the program begins, and what is seen of it.
func (c *pod) begins() string {
	if c.Pod == "" {
		return c.operator.Name() + " is a program of the sandbox, without taps: what it writes, and what it reads of OLM's kinds, is seen at the gate; its work queues and its caches are not"
	}
	text := fmt.Sprintf("%s runs in pod %s/%s", c.operator.Name(), c.Namespace, c.Pod)
	if !c.Tapped {
		text += ", without taps: its requests are seen at the gate, and its reconciles if its log tells of them (with controller-runtime: " +
			"--zap-log-level=5 --zap-encoder=json); its work queue and its cache are not"
	}
	return text
}

// order sends the node an order. One that has ended does not get it.
func (c *pod) order(o images.Order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = json.NewEncoder(c.conn).Encode(o)
}

// Signal sends the program a signal.
func (c *pod) Signal(s syscall.Signal) { c.order(images.Order{Signal: s}) }

// killPatience limits the wait for a node to kill a program.
const killPatience = 5 * time.Second

// Kill has the node kill the program, and returns when it has ended: what the lab does next, such as to close a connection, it must
// not see. A node that does not say so in time kills it when it sees that the connection is closed.
func (c *pod) Kill() {
	c.order(images.Order{Signal: syscall.SIGKILL})
	select {
	case <-c.ended:
	case <-time.After(killPatience):
	}
	_ = c.conn.Close()
}

// release lets a program in a pod go on when the run is over, because a newer pod's is the operator's from now on. Only its requests
// are recorded.
func (r *run) release() {
	name, pod := r.operator.options.Name, r.command.pod
	pod.hears(nil)
	others := taps.New(r.options.Journal, taps.Options{Operator: name + otherClients, Actor: pod.Pod})
	r.gate.Use(gate.Run{
		Injector: fault.NewFaults(fault.FaultsOptions{Journal: r.options.Journal}).Injector(name),
		Wrap:     func(next http.RoundTripper) http.RoundTripper { return others.Recorder(next, nil) },
	})
	r.unlink()
	r.released = true
	go func() {
		<-pod.ended
		_ = r.gate.Close()
	}()
}
