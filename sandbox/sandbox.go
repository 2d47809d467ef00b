// Package sandbox starts and stops a Kubernetes control plane on this machine: real etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, all out of the one operator-lab binary, without a download, a
// container or a privilege.
//
//	lab, err := sandbox.Start(ctx, sandbox.Options{Ephemeral: true})
//	if err != nil { … }
//	defer lab.Stop()
//	client, err := client.New(lab.Config(), client.Options{})
//
// In contrast to a bare envtest, what people expect of a cluster happens: children of deleted owners are collected,
// namespaces go away, Deployments make ReplicaSets make Pods, service accounts appear. Kubernetes' own controllers
// do that. Nodes are simulated ([Options].Nodes): Kubernetes' own kubelet over a runtime whose containers are programs.
//
// Whatever happens to the process that called [Start], SIGKILL included, its programs end with it.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/network"
	"github.com/operator-lab/operator-lab/sandbox/node"
	"github.com/operator-lab/operator-lab/sandbox/storage"
)

// DefaultName is the name of the sandbox if none is given.
const DefaultName = "default"

// Options are the options of [Start]. The zero value starts the sandbox named [DefaultName] with what it held last.
type Options struct {
	// Name is the name of the sandbox; several run side by side. Default: [DefaultName], or a unique name for an
	// ephemeral sandbox.
	Name string
	// StateDir is the directory with everything of all sandboxes. Default: [StateDir]().
	StateDir string
	// Binary is the operator-lab binary. Default: [FindBinary]().
	Binary string
	// Version is the version of the caller, for the [Record]. Default: empty.
	Version string
	// Fresh deletes what a sandbox of this name held before. Default: it is kept.
	Fresh bool
	// Ephemeral deletes what the sandbox held when it stops. Default: it is kept.
	Ephemeral bool
	// CRDs are installed before Start returns. Default: none.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Operators are the names of operators that run in this process, for the [Record]. Default: none.
	Operators []string
	// Nodes is the number of simulated nodes, at most [MaxNodes]. Default: none, and Pods stay Pending.
	Nodes int
	// FakeNodes is the number of nodes that only answer, at most [MaxFakeNodes]: KWOK says that their pods are Ready, and
	// no program runs in them. Default: none.
	FakeNodes int
	// Images is the path of a file with more images, see the package images. Default: only those that come with the lab
	// are known.
	Images string
	// OLM starts the Operator Lifecycle Manager too, with a catalog of the bundled operators. Default: it is not there.
	OLM bool
	// Catalog is a directory with a file-based catalog for OLM, which is served beside that of the bundled operators. Default:
	// none.
	Catalog string
	// Progress is called after each step of [Start]. Default: nothing is.
	Progress func(Step)
	// OnExit is called when a program died that nobody stopped. It is started again. Default: nothing is.
	OnExit func(Exit)
	// OnAudit is called with every write by anybody, as a line of the API server's audit log (a JSON object of kind
	// Event, audit.k8s.io/v1, with request and response) whose bytes it may keep. It must return soon: the API server
	// waits. Default: there is no audit log.
	OnAudit func(line []byte)
}

// Step is a finished step of [Start].
type Step struct {
	// Name is a program, "data", "crds" or "catalogs".
	Name string
	// Took is the time since the beginning of Start.
	Took time.Duration
	// Note says what is unusual about it; usually empty.
	Note string
}

// Sandbox is a running control plane.
type Sandbox struct {
	options  Options
	layout   layout
	plane    *plane
	programs []*program
	lock     *flock
	ports    *reservations
	began    time.Time
	begun    atomic.Bool // [Start] is over
	admin    *rest.Config
	plan     network.Plan
	hub      *network.Hub

	releaseLoopback func()

	checkpoints *Checkpoints
	nodes       *Nodes

	stopOnce sync.Once
	stopErr  error
	cancel   context.CancelFunc // of what runs as long as the sandbox
	provide  func() error       // starts the cloud provider, once
	watchers sync.WaitGroup
	done     chan struct{}
	// preparing is closed when the data of later sandboxes is prepared. It is nil where there was no need to.
	preparing chan struct{}

	mu     sync.Mutex
	record *Record
	err    error
}

// Start starts a sandbox and returns when everything in it can be used. When it fails, or ctx ends before, nothing
// is left running. A ctx that ends later does not stop the sandbox: call [Sandbox.Stop].
//
// Errors that a person can do something about are of type [*Problem]; see also [ErrNameTaken] and [ErrNoBinary].
func Start(ctx context.Context, o Options) (*Sandbox, error) {
	began := time.Now()
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := enoughFiles(); err != nil {
		return nil, err
	}
	if err := guard.OpenPipe(); err != nil {
		return nil, explain(err)
	}
	s := &Sandbox{
		options: o, layout: layoutOf(o.StateDir, o.Name), began: began,
		done: make(chan struct{}),
	}
	s.checkpoints = newCheckpoints(s)
	err := s.start(ctx)
	s.begun.Store(true)
	if err == nil {
		return s, nil
	}
	_ = s.Stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, explain(err)
}

func (o *Options) complete() (err error) {
	if o.Name == "" {
		o.Name = DefaultName
		if o.Ephemeral {
			o.Name = fmt.Sprintf("tmp-%d-%s", os.Getpid(), strconv.FormatInt(time.Now().UnixNano()%(36*36*36*36), 36))
		}
	}
	if err := errors.Join(CheckName(o.Name), checkNodes(o.Nodes, MaxNodes), checkNodes(o.FakeNodes, MaxFakeNodes)); err != nil {
		return err
	}
	if err := o.checkCatalog(); err != nil {
		return err
	}
	if o.OLM {
		o.CRDs = slices.Concat(o.CRDs, olmCRDs())
	}
	if o.Images != "" {
		if o.Images, err = filepath.Abs(o.Images); err != nil {
			return err
		}
		if err := checkImages(o.Binary, o.Images); err != nil {
			return err
		}
	}
	if o.StateDir == "" {
		if o.StateDir, err = StateDir(); err != nil {
			return err
		}
	}
	if o.Binary == "" {
		o.Binary, err = FindBinary()
	} else {
		o.Binary, err = checkBinary(o.Binary)
	}
	return err
}

// filesNeeded is the number of files that the API server, which inherits this process's limit, opens for watches and
// connections of a small cluster.
const filesNeeded = 512

func enoughFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("ask how many files this process may open: %w", err)
	}
	if limit.Cur >= filesNeeded {
		return nil
	}
	return &Problem{
		fmt.Errorf("this process may open only %d files, a control plane needs %d", limit.Cur, filesNeeded),
		"raise the limit with 'ulimit -n 4096'",
	}
}

// start carries out [Start], step by step.
func (s *Sandbox) start(ctx context.Context) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	if err := s.claim(ctx); err != nil {
		return err
	}
	preparer, err := s.preparer()
	if err != nil {
		return err
	}
	used, prepared, err := s.provideData(preparer)
	if err != nil {
		return err
	}
	first := !used && !prepared
	early := make(chan error, 1)
	if first {
		go func() { early <- s.installEarly(ctx) }()
	}
	lasting, cancel := context.WithCancel(quiet(ctx))
	s.cancel = cancel
	if err := s.startPrograms(ctx, lasting); err != nil {
		if used && ctx.Err() == nil && !isProblem(err) {
			err = &Problem{err, "try again; if it stays so, " + damagedHint}
		}
		return err
	}
	// The API server is ready, so its bootstrap hooks have run, now or when the data was prepared.
	if err := os.WriteFile(s.layout.program(PreparedFile), nil, 0o600); err != nil {
		return err
	}
	switch {
	case first:
		err = <-early
	case used:
		err = s.install(ctx)
	}
	if err != nil {
		return err
	}
	if !prepared { // prepared data has them already
		s.step("crds", "")
	}
	if err := errors.Join(s.awaitUsable(ctx), s.watchServices(ctx)); err != nil {
		return err
	}
	if first {
		if err := s.prepareNext(ctx, lasting, preparer); err != nil {
			return err
		}
	}
	if !prepared {
		if err := s.plane.awaitSettled(ctx); err != nil {
			return err
		}
	}
	if err := s.startOLM(ctx, lasting); err != nil {
		return err
	}
	if err := writeKubeconfig(s.layout.kubeconfig(), contextName(s.options.Name), s.admin); err != nil {
		return err
	}
	return s.save(func(r *Record) { r.Ready = true })
}

// startPrograms starts all programs but those of OLM. lasting ends with the sandbox.
func (s *Sandbox) startPrograms(ctx, lasting context.Context) error {
	managers, err := s.plane.managerPrograms(s.options.FakeNodes)
	if err != nil {
		return err
	}
	nodes, err := s.plane.nodePrograms(s.options.Nodes, s.options.Images, s.plan)
	if err != nil {
		return err
	}
	s.nodes = &Nodes{
		Fleet:    &node.Fleet{Count: s.options.Nodes, Sockets: s.plan.Dir, File: s.layout.troubles()},
		programs: nodes,
	}
	if err := (node.Orders{File: s.nodes.File}).Write(nil); err != nil { // troubles of an earlier run are over
		return err
	}
	etcd := s.plane.etcdProgram()
	s.programs = append([]*program{etcd, s.plane.apiServerProgram()}, append(managers, nodes...)...)
	for _, p := range s.programs[2:] {
		p.after = etcd // they wait for the API server, and at first would only take the processor from it
	}
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	provider := &cloudProvider{
		client: client, nodes: s.options.Nodes, fake: s.options.FakeNodes, plan: s.plan, failed: func(node string, err error) { s.step(node, err.Error()) },
	}
	s.provide = sync.OnceValue(func() error { return provider.start(lasting) })
	return s.launch(ctx, lasting, s.programs...)
}

// launch starts programs side by side, and keeps them running as long as lasting.
func (s *Sandbox) launch(ctx, lasting context.Context, programs ...*program) error {
	for _, p := range programs {
		p.launched = func(ctx context.Context) error {
			s.step(p.name, p.note)
			switch {
			case p.name == "etcd" && !s.begun.Load():
				return s.checkpoints.finishRestore(ctx)
			case p.name == "kube-apiserver":
				// Nodes that are starting wait for it, and nodes that only an earlier run had are deleted.
				return s.provide()
			}
			return nil
		}
	}
	if err := startTogether(ctx, programs...); err != nil {
		return err
	}
	for _, p := range programs {
		p.changed = func() {
			if s.begun.Load() { // until then [Start] saves it
				_ = s.save(func(*Record) {}) // a full disk does not end the sandbox
			}
		}
		s.watchers.Go(func() { s.watch(lasting, p) })
	}
	return s.save(func(*Record) {})
}

// quiet returns a context that does not end with its parent, and discards the log of Kubernetes' libraries: while the API
// server is away they complain.
func quiet(ctx context.Context) context.Context {
	return klog.NewContext(context.WithoutCancel(ctx), logr.Discard())
}

// watch keeps a program running. If that fails, the sandbox cannot go on.
func (s *Sandbox) watch(ctx context.Context, p *program) {
	err := p.watch(ctx, func(e Exit) {
		if s.options.OnExit != nil {
			s.options.OnExit(e)
		}
	})
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.done)
	}
}

func (s *Sandbox) step(name, note string) {
	if s.options.Progress != nil && !s.begun.Load() { // programs are launched again later on
		s.options.Progress(Step{Name: name, Took: time.Since(s.began), Note: note})
	}
}

// save changes the record and writes it to its file.
func (s *Sandbox) save(change func(*Record)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.record)
	s.record.Children, s.record.Restarts = map[string]int{}, map[string]int{}
	for _, p := range s.programs {
		s.record.Children[p.name] = p.pid()
		if n := p.restarted(); n > 0 {
			s.record.Restarts[p.name] = n
		}
	}
	return s.record.write()
}

// Checkpoints saves and restores the state of the sandbox.
func (s *Sandbox) Checkpoints() *Checkpoints { return s.checkpoints }

// Nodes returns the simulated nodes, to switch them off and on and to let things go wrong on them.
func (s *Sandbox) Nodes() *Nodes { return s.nodes }

// Name returns the name of the sandbox.
func (s *Sandbox) Name() string { return s.options.Name }

// Began returns the time at which [Start] was called.
func (s *Sandbox) Began() time.Time { return s.began }

// LogFile returns the path of a program's log. See [Programs] for the names; nodes are node-1, node-2, …
func (s *Sandbox) LogFile(program string) string { return s.plane.logFile(program) }

// Dir returns the directory that holds everything of this sandbox.
func (s *Sandbox) Dir() string { return s.layout.dir }

// Kubeconfig returns the path of a kubeconfig with an administrator's credentials.
func (s *Sandbox) Kubeconfig() string { return s.layout.kubeconfig() }

// Config returns an administrator's client configuration, without a client-side rate limit. The caller owns it.
func (s *Sandbox) Config() *rest.Config { return rest.CopyConfig(s.admin) }

// User issues a client certificate for a user name and groups, and returns a configuration that uses it.
func (s *Sandbox) User(name string, groups ...string) (*rest.Config, error) {
	return s.plane.user(name, groups)
}

// PIDs returns the process ids of the control plane's programs and of the nodes, by name.
func (s *Sandbox) PIDs() map[string]int {
	pids := map[string]int{}
	for _, p := range s.programs {
		pids[p.name] = p.pid()
	}
	return pids
}

// Kill ends a program of the control plane, or a node, with SIGKILL, as a crash would, and returns when it is dead. It
// is started again, however often. See [Programs] and [OLMPrograms] for the names.
func (s *Sandbox) Kill(program string) error {
	var names []string
	for _, p := range s.programs {
		if p.name == program {
			p.kill()
			return nil
		}
		names = append(names, p.name)
	}
	err := fmt.Errorf("the sandbox has no program %q", program)
	if slices.Contains(OLMPrograms(), program) {
		err = fmt.Errorf("the sandbox was started without --olm, and has no %s", program)
	}
	return &Problem{err, "its programs are " + strings.Join(names, ", ")}
}

// Done returns a channel that is closed when the sandbox cannot go on because a program does not stay up; [Sandbox.Err]
// then says why.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Err returns why the sandbox cannot go on. It is nil until [Sandbox.Done] is closed.
func (s *Sandbox) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stop ends all programs and returns when they are gone. What the sandbox held stays on disk unless it is ephemeral.
// Further calls return the same.
func (s *Sandbox) Stop() error {
	s.stopOnce.Do(func() { s.stopErr = s.stop() })
	return s.stopErr
}

func (s *Sandbox) stop() error {
	if s.lock == nil {
		return nil // never claimed
	}
	s.checkpoints.close()
	var errs []error
	if len(s.programs) > 0 {
		// etcd last: the others use it while they stop.
		errs = append(errs, stopAll(s.programs[1:]...), s.programs[0].stop())
	}
	if s.preparing != nil { // it takes less time than it saves
		select {
		case <-s.preparing:
		case <-time.After(stopTimeout):
		}
	}
	if s.cancel != nil {
		s.cancel()
	}
	errs = append(errs, s.closeNetwork())
	s.watchers.Wait()
	if s.record != nil {
		errs = append(errs, s.save(func(r *Record) { r.PID, r.Ready = 0, false }))
	}
	if s.ports != nil {
		s.ports.release()
	}
	if s.options.Ephemeral {
		errs = append(errs, storage.RemoveAll(s.layout.dir))
	}
	s.lock.unlock()
	return errors.Join(errs...)
}
