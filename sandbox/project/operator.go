package project

import (
	"context"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/process"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// OperatorOptions says how an operator of somebody's own is run.
type OperatorOptions struct {
	// Project is what was found of it, and Plan what it needs.
	Project *Project
	Plan    *Plan
	// Program is the path of a program that is built already. Default: the project is built.
	Program string
	// Args are added to the arguments of the plan, and Env, of the form NAME=value, to its variables.
	Args, Env []string
	// ClusterEnv are variables that the sandbox gives to programs; those of the plan and Env overrule them. It is called
	// before each run. Default: there are none.
	ClusterEnv func() []string
	// NoTaps leaves the taps out, and NoWebhooks the configurations of webhooks.
	NoTaps, NoWebhooks bool
	// Compiling is called with the import path of each package that is compiled, one call after the other. Default: nobody
	// is told.
	Compiling func(importPath string)
	// NoLeaderElection lets it work without leader election, if it has taps: after a crash the next life does not wait for the lease
	// of the one before.
	NoLeaderElection bool
	// Untouched says that the cluster is given nothing: neither what the plan has nor configurations of webhooks.
	Untouched bool
	// Built is called after each build with the time that it took. Default: nobody is told.
	Built func(time.Duration)
}

// Operator is an operator of somebody's own as a program for a lab: it is built, the cluster is given what its plan has,
// it runs in a process, and its webhooks are installed once they answer. One that is made of Helm charts, or of a
// hook, runs in this process.
type Operator struct {
	*process.Operator
	options OperatorOptions
	// building ends with the operator, and the build with it.
	building  context.Context
	stopBuild context.CancelFunc
	mu        sync.Mutex
	build     func() (string, error) // builds once
	// built is when the build of the newest program began.
	built time.Time
	// preparing is held while a run is prepared. port is that of the webhook server; 0: none. appliedTo is the cluster that was given
	// what the operator needs, or nil; installed says that it was given the configurations of webhooks. A later life finds both as
	// they are then. scratch are directories with the files of runs, which are removed in the end.
	preparing sync.Mutex
	port      int
	appliedTo operatorhost.Cluster
	installed bool
	scratch   []string
}

// NewOperator returns an operator for a lab. Close it after the lab.
func NewOperator(o OperatorOptions) *Operator {
	op := &Operator{options: o}
	op.building, op.stopBuild = context.WithCancel(context.Background())
	op.build = op.newBuild()
	op.Operator = process.New(process.Options{
		Name: o.Project.Name, Tapped: op.Tapped(), Files: o.Project.options.WorkDir, Prepare: op.prepare, Begun: op.installWebhooks,
		Line: op.line(),
	})
	return op
}

// Beside returns the operator once more, for a lab beside the first one: the same program, in processes of its own, with their files in a
// new directory. nil means that it cannot run twice, because webhooks are called at one process, or because it has none. Close it
// after its lab.
func (o *Operator) Beside(dir string) (*process.Operator, error) {
	plan := o.plan()
	serves := !o.options.NoWebhooks && plan.ServesWebhooks(o.Tapped(), slices.Concat(plan.Args, o.options.Args, plan.Env, o.options.Env))
	if serves || o.options.Project.InProcess() {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return process.New(process.Options{Name: o.options.Project.Name, Tapped: o.Tapped(), Files: dir, Prepare: o.prepareBeside, Line: o.line()}), nil
}

// line returns what takes the lines that a program with taps prints; nil for one whose taps tell all.
func (o *Operator) line() func(*trace.Journal) func(string) {
	p := o.options.Project
	if p.Ansible == nil {
		return nil
	}
	return func(journal *trace.Journal) func(string) { return newAnsibleLog(p.Name, p.files().home, journal).line }
}

// Close ends a build, kills what is left of the operator's processes, and removes their files.
func (o *Operator) Close() {
	o.stopBuild()
	o.Operator.Close()
	o.preparing.Lock()
	defer o.preparing.Unlock()
	for _, dir := range o.scratch {
		_ = os.RemoveAll(dir) // else the next OpenWork does it
	}
}

// Tapped reports whether the program has the taps.
func (o *Operator) Tapped() bool {
	return o.options.Program == "" && o.options.Project.Linked && !o.options.NoTaps
}

// Build waits until the operator is built. It may be called early, so that the build runs while a sandbox boots. Later
// calls return the same until [Operator.BuildAgain].
func (o *Operator) Build(ctx context.Context) error {
	defer context.AfterFunc(ctx, o.stopBuild)()
	_, err := o.binary()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// BuildAgain builds the operator anew for its next life, and applies its manifests if they have changed. With an error that is the
// same program as before; a [*ManifestsError] says that it is the manifests that are wrong.
func (o *Operator) BuildAgain() (applied bool, err error) {
	build := o.newBuild()
	if _, err := build(); err != nil {
		return false, err
	}
	if applied, err = o.applyAgain(o.building); err != nil {
		return false, &ManifestsError{err}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.build = build
	return applied, nil
}

// ManifestsError says that manifests that have changed cannot be read or applied.
type ManifestsError struct{ Err error }

// Error implements error.
func (e *ManifestsError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with them.
func (e *ManifestsError) Unwrap() error { return e.Err }

// applyAgain applies the manifests as they are now if they were applied before, and have changed. The next life has the arguments,
// variables and webhooks that they name now.
func (o *Operator) applyAgain(ctx context.Context) (applied bool, err error) {
	o.preparing.Lock()
	defer o.preparing.Unlock()
	if o.appliedTo == nil {
		return false, nil
	}
	before := o.plan()
	plan, err := o.options.Project.Plan(ctx)
	if err != nil {
		return false, err
	}
	if applied = !reflect.DeepEqual(plan.Objects, before.Objects); applied {
		if err := ApplyAll(ctx, o.appliedTo, plan.Objects, plan.Namespace); err != nil {
			return false, err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.options.Plan = plan
	o.installed = o.installed && !applied && reflect.DeepEqual(plan.Webhooks, before.Webhooks)
	return applied, nil
}

// plan returns the newest plan.
func (o *Operator) plan() *Plan {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.options.Plan
}

// binary waits for the newest build.
func (o *Operator) binary() (string, error) {
	o.mu.Lock()
	build := o.build
	o.mu.Unlock()
	return build()
}

// newBuild returns a function that builds the project once.
func (o *Operator) newBuild() func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		if o.options.Program != "" {
			return o.options.Program, nil
		}
		if o.options.Project.Watches != "" {
			_, err := helm.Load(o.options.Project.Watches, nil)
			return "", err
		}
		if o.options.Project.Hooked {
			return "", checkHook(o.options.Project.Hook)
		}
		if o.options.Project.Ansible != nil {
			err := CheckAnsible(o.building)
			if err == nil {
				_, err = readAnsible(o.options.Project.Ansible.Watches)
			}
			if err != nil {
				return "", err
			}
		}
		began := time.Now()
		binary, err := o.options.Project.Build(o.building, BuildOptions{Plain: !o.Tapped(), Progress: o.options.Compiling})
		if err == nil && o.options.Built != nil {
			o.options.Built(time.Since(began))
		}
		if err == nil {
			o.mu.Lock()
			o.built = began
			o.mu.Unlock()
		}
		return binary, err
	})
}

// prepare prepares a run of the operator, and prepareBeside one of the operator beside it.
func (o *Operator) prepare(ctx context.Context, cluster operatorhost.Cluster) (process.Command, error) {
	return o.prepareRun(ctx, cluster, false)
}

func (o *Operator) prepareBeside(ctx context.Context, cluster operatorhost.Cluster) (process.Command, error) {
	return o.prepareRun(ctx, cluster, true)
}

// prepareRun waits for the build, applies what the operator needs and returns its command.
func (o *Operator) prepareRun(ctx context.Context, cluster operatorhost.Cluster, beside bool) (process.Command, error) {
	binary, err := o.binary()
	if err != nil {
		return process.Command{}, err
	}
	o.preparing.Lock()
	defer o.preparing.Unlock()
	plan := o.plan()
	if err := o.apply(ctx, cluster); err != nil {
		return process.Command{}, err
	}
	c := process.Command{
		Program: binary, Args: slices.Concat(plan.Args, o.options.Args), Dir: o.options.Project.Root,
		ServiceAccount: plan.ServiceAccount, Namespace: plan.Namespace, NoLeaderElection: o.options.NoLeaderElection,
	}
	if o.options.ClusterEnv != nil {
		c.Env = o.options.ClusterEnv()
	}
	c.Env = slices.Concat(c.Env, plan.Env, o.options.Env)
	if o.options.Project.Ansible != nil {
		if err := o.ansibleCommand(&c, beside); err != nil {
			return process.Command{}, err
		}
	}
	if !o.options.NoWebhooks && (o.Tapped() || !o.options.Untouched) && plan.ServesWebhooks(o.Tapped(), slices.Concat(c.Args, c.Env)) {
		if o.port == 0 {
			if o.port, err = o.webhookPort(); err != nil {
				return process.Command{}, err
			}
		}
		c.WebhookPort, c.WebhookCertDir = o.port, plan.CertDir
	}
	return c, nil
}

// apply gives the cluster what the plan has, before the first run.
func (o *Operator) apply(ctx context.Context, cluster operatorhost.Cluster) error {
	if o.appliedTo != nil || o.options.Untouched {
		return nil
	}
	err := ApplyAll(ctx, cluster, o.plan().Objects, o.plan().Namespace)
	if err == nil {
		o.appliedTo = cluster
	}
	return err
}

// webhookPort returns the port of the webhook server: a free one for a program that is told which, else that of the manifests.
func (o *Operator) webhookPort() (int, error) {
	if o.Tapped() {
		return freePort()
	}
	port := o.plan().WebhookPort
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, problem("end what listens there, or run it with --no-webhooks", "the program is to serve its webhooks on port %d: %w", port, err)
	}
	return port, l.Close()
}

// freePort returns a port of 127.0.0.1 that nobody uses now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// webhookPause is how often to try whether the webhook server answers.
const webhookPause = 20 * time.Millisecond

// installWebhooks installs the webhook configurations once their server answers: the API server would refuse writes
// before.
func (o *Operator) installWebhooks(ctx context.Context, cluster operatorhost.Cluster) error {
	o.preparing.Lock()
	port, plan, done := o.port, o.plan(), o.installed
	o.preparing.Unlock()
	if port == 0 || done || o.options.Untouched {
		return nil
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case <-ctx.Done():
			return &sandbox.Problem{
				Err:  fmt.Errorf("the program's webhook server does not answer on %s: %w", address, ctx.Err()),
				Hint: "run it with --no-webhooks, or look into " + o.LogFile(),
			}
		case <-time.After(webhookPause):
		}
	}
	err := ApplyAll(ctx, cluster, PointWebhooks(plan.Webhooks, port, plan.CA), plan.Namespace)
	o.preparing.Lock()
	defer o.preparing.Unlock()
	o.installed = err == nil && plan == o.plan()
	return err
}
