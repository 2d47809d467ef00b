package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/host"
	"github.com/operator-lab/operator-lab/sandbox/lab"
)

// ground is where tests are run.
type ground struct {
	// Cluster is the sandbox; nil when it is another cluster, or none.
	host.Cluster
	// name of the sandbox, empty without one.
	name string
	// config is for the tests; nil without a cluster.
	config *rest.Config
	// kubeconfig is for programs; empty without a cluster.
	kubeconfig string
	// kubectl is the lab's own.
	kubectl string
	// environment of programs, in addition to our own.
	environment []string
	// kill ends a program of the control plane; nil where that cannot be done.
	kill func(program string) error
	// machines are its nodes; nil where nobody can reach them.
	machines lab.Machines
	// done is closed when the sandbox is over; err then says why. It is nil when nobody tells.
	done <-chan struct{}
	err  func() error
	// leave is called at the end.
	leave func(ctx context.Context, failed bool) error
}

// stays is how to leave a cluster that stays as it is.
func stays(context.Context, bool) error { return nil }

// The speed of clients in a cluster of somebody else: Chainsaw's.
const (
	foreignQPS   = 300
	foreignBurst = 300
)

// answerTime is how long another cluster may take to say that it is there.
const answerTime = 15 * time.Second

// openGround finds the cluster that the tests are meant for, or boots a sandbox.
func (t *testRun) openGround(ctx context.Context) (g *ground, err error) {
	kubectl, err := ownKubectl()
	if err != nil {
		return nil, sandboxError(err)
	}
	t.moreNodes()
	switch {
	case t.noCluster:
		g = &ground{leave: stays}
	case t.foreign():
		g, err = t.openForeign(ctx)
	case t.name != "":
		g, err = t.openNamed()
	case t.keep:
		g, err = t.bootKept(ctx)
	default:
		g, err = t.boot(ctx)
	}
	if err != nil {
		return nil, err
	}
	g.kubectl = kubectl
	return g, nil
}

// ownKubectl is a link to this binary by the name of kubectl, so that scripts find that and no other.
func ownKubectl() (string, error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return "", err
	}
	binary, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir, err := sandbox.Assets(state, binary)
	return filepath.Join(dir, "kubectl"), err
}

// boot starts a sandbox that is gone afterwards.
func (t *testRun) boot(ctx context.Context) (*ground, error) {
	o, err := sandboxOptions(t.io.err, !t.verbose)
	if err != nil {
		return nil, err
	}
	o.Ephemeral = true
	if err := t.nodes.use(&o); err != nil {
		return nil, err
	}
	prepareTestLab(t, &o)
	t.sayf("booting a control plane")
	lab, err := sandbox.Start(ctx, o)
	if err != nil {
		return nil, sandboxError(err)
	}
	t.sayf("it is ready after %.2fs", time.Since(lab.Began()).Seconds())
	g := &ground{
		Cluster: lab, name: lab.Name(), kill: lab.Kill, machines: lab, done: lab.Done(), err: lab.Err,
		leave: func(context.Context, bool) error { return lab.Stop() },
	}
	if err := t.use(g, lab.Kubeconfig(), lab.Dir(), lab.Proxy()); err != nil {
		return nil, errors.Join(err, g.leave(ctx, true))
	}
	return g, nil
}

// bootKept starts a sandbox in the background, which stays when a test failed.
func (t *testRun) bootKept(ctx context.Context) (*ground, error) {
	name := fmt.Sprintf("test-%d", os.Getpid())
	t.sayf("booting a control plane")
	record, err := startDetached(ctx, upFlags{name: name, fresh: true, nodes: t.nodes}, func(s sandbox.Step) {
		if t.verbose {
			fmt.Fprintln(t.io.err, progressLine(s))
		}
	})
	if err != nil {
		return nil, err
	}
	g, err := t.openRecord(record)
	if err != nil {
		return nil, errors.Join(err, down(ctx, streams{err: io.Discard}, record, true))
	}
	before := g.leave
	g.leave = func(ctx context.Context, failed bool) error {
		if err := before(ctx, failed); err != nil {
			return err
		}
		if !failed {
			return down(ctx, streams{err: io.Discard}, record, true)
		}
		fmt.Fprintf(t.io.err, "sandbox %s stays; use it with 'operator-lab kubectl --name %s …', delete it with 'operator-lab down --name %s --delete'\n", name, name, name)
		return nil
	}
	return g, nil
}

// openNamed uses a sandbox that is running.
func (t *testRun) openNamed() (*ground, error) {
	record, err := running(t.name)
	if err != nil {
		return nil, sandboxError(err)
	}
	return t.openRecord(record)
}

func (t *testRun) openRecord(record *sandbox.Record) (*ground, error) {
	lab, err := record.Open()
	if err != nil {
		return nil, sandboxError(err)
	}
	g := &ground{Cluster: lab, name: lab.Name(), leave: stays}
	return g, t.use(g, lab.Kubeconfig(), record.Dir, record.Proxy)
}

// use reads the kubeconfig of a sandbox as flags would have it.
func (t *testRun) use(g *ground, kubeconfig, dir, proxy string) error {
	if err := t.read(g, kubeconfig); err != nil {
		return err
	}
	g.config.QPS = g.Config().QPS
	g.environment = sandbox.Environment(dir, proxy)
	return nil
}

// openForeign uses a cluster that is not the lab's.
func (t *testRun) openForeign(ctx context.Context) (*ground, error) {
	g := &ground{leave: stays}
	if err := t.read(g, t.kubeconfig); err != nil {
		return nil, err
	}
	g.config.QPS, g.config.Burst = foreignQPS, foreignBurst
	if err := answers(ctx, g.config); err != nil {
		return nil, errors.Join(err, g.leave(ctx, false))
	}
	return g, nil
}

// read reads a kubeconfig, by default that of the environment, as flags would have it. Programs are given a copy when it
// differs from the file.
func (t *testRun) read(g *ground, file string) error {
	wrong := func(err error) error {
		return usageError("name the kubeconfig of a cluster with --kubeconfig, or leave it out to run in a sandbox", "no cluster to run against: %w", err)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	raw, err := rules.Load()
	if err != nil {
		return wrong(err)
	}
	loader := clientcmd.NewNonInteractiveClientConfig(*raw, t.kubeOverrides.CurrentContext, &t.kubeOverrides, rules)
	if g.config, err = loader.ClientConfig(); err != nil {
		return wrong(err)
	}
	if file != "" && !t.overrides() {
		g.kubeconfig, err = filepath.Abs(file)
		return err
	}
	merged, err := mergedKubeconfig(loader)
	if err != nil {
		return wrong(err)
	}
	dir, err := os.MkdirTemp("", "operator-lab-kubeconfig-") // mode 0700
	if err != nil {
		return err
	}
	before := g.leave
	g.leave = func(ctx context.Context, failed bool) error {
		return errors.Join(before(ctx, failed), os.RemoveAll(dir))
	}
	g.kubeconfig = filepath.Join(dir, "kubeconfig")
	return clientcmd.WriteToFile(*merged, g.kubeconfig)
}

// overrides reports whether a flag overrules a kubeconfig.
func (t *testRun) overrides() (given bool) {
	t.flags.Visit(func(f *pflag.Flag) { given = given || strings.HasPrefix(f.Name, "kube-") })
	return given
}

// answers reports a cluster that does not.
func answers(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = answerTime
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return usageError("look at the kubeconfig", "use the cluster: %w", err)
	}
	if _, err := client.RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &exitError{exitSandbox, &sandbox.Problem{
			Err:  fmt.Errorf("the cluster does not answer: %w", err),
			Hint: "try 'kubectl version' with the same kubeconfig, or leave it out to run in a sandbox",
		}}
	}
	return nil
}

// mergedKubeconfig is the kubeconfig with all that flags say in it.
func mergedKubeconfig(loader clientcmd.OverridingClientConfig) (*clientcmdapi.Config, error) {
	merged, err := loader.MergedRawConfig()
	if err != nil {
		return nil, err
	}
	if err := clientcmdapi.MinifyConfig(&merged); err != nil {
		return nil, err
	}
	// Files that it names are named relative to where it was.
	return &merged, clientcmdapi.FlattenConfig(&merged)
}
