package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// target is the cluster that tests or a demo run against.
type target struct {
	// Cluster is the sandbox, or the cluster of the user's in which their operator runs; nil when tests run against another
	// cluster, or none.
	operatorhost.Cluster
	// name of the sandbox, empty without one.
	name string
	// dir is the directory of the sandbox, proxy the URL of the proxy that knows its names; both are empty without one.
	dir, proxy string
	// config is for the tests; nil without a cluster.
	config *rest.Config
	// kubeconfig is for programs; empty without a cluster.
	kubeconfig string
	// kubectl is the lab's own.
	kubectl string
	// kill ends a program of the control plane; nil where that cannot be done.
	kill func(program string) error
	// machines are its nodes; nil where they cannot be reached.
	machines lab.Machines
	// done is closed when the sandbox is over; err then says why. Both are nil for a sandbox in the background and for other clusters.
	done <-chan struct{}
	err  func() error
	// leave is called at the end.
	leave func(ctx context.Context, failed bool) error
}

// files is where bundled operators keep files; empty without a sandbox.
func (t *target) files() string {
	if t.dir == "" {
		return ""
	}
	return filepath.Join(t.dir, "operators")
}

// bootTarget starts a sandbox that is gone afterwards.
func bootTarget(ctx context.Context, o sandbox.Options) (*target, error) {
	o.Ephemeral = true
	box, err := sandbox.Start(ctx, o)
	if err != nil {
		return nil, sandboxError(err)
	}
	return &target{
		Cluster: box, name: box.Name(), dir: box.Dir(), proxy: box.Proxy(), kubeconfig: box.Kubeconfig(),
		kill: box.Kill, machines: box.Nodes(), done: box.Done(), err: box.Err,
		leave: func(context.Context, bool) error { return box.Stop() },
	}, nil
}

// recordTarget uses a sandbox that is running.
func recordTarget(record *sandbox.Record) (*target, error) {
	box, err := record.Open()
	if err != nil {
		return nil, sandboxError(err)
	}
	return &target{
		Cluster: box, name: box.Name(), dir: record.Dir, proxy: record.Proxy, kubeconfig: box.Kubeconfig(), leave: stays,
	}, nil
}

// environment returns the variables of programs, in addition to those of this process.
func (t *target) environment() []string {
	if t.Cluster == nil || t.dir == "" {
		return nil
	}
	return sandbox.Environment(t.dir, t.proxy)
}

// meter returns what measures writes; nil where the names of a sandbox are not known.
func (t *target) meter() func(context.Context, types.NamespacedName) runner.Meter {
	if t.Cluster == nil || t.dir == "" {
		return nil
	}
	return func(ctx context.Context, cluster types.NamespacedName) runner.Meter {
		return members.Measure(ctx, members.Writer{Endpoint: members.Endpoint(cluster), Dial: t.DialContext})
	}
}

// watch ends ctx when the sandbox is over before it.
func (t *target) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-t.done:
		cancel(sandboxError(t.err()))
	case <-ctx.Done():
	}
}

// stays leaves a cluster as it is.
func stays(context.Context, bool) error { return nil }

// The speed of clients in a cluster of somebody else: Chainsaw's.
const (
	foreignQPS   = 300
	foreignBurst = 300
)

// answerTime limits the first request to another cluster.
const answerTime = 15 * time.Second

// openTarget finds the cluster that the tests are meant for, or boots a sandbox.
func (t *suite) openTarget(ctx context.Context) (c *target, err error) {
	kubectl, err := ownKubectl()
	if err != nil {
		return nil, sandboxError(err)
	}
	t.moreNodes()
	switch {
	case t.cluster != nil:
		if c, err = t.cluster.target(ctx); err == nil {
			c.kubeconfig = t.cluster.file
			err = errors.Join(t.flags.Set("kube-context", t.cluster.context), t.use(c))
		}
	case t.noCluster:
		c = &target{leave: stays}
	case t.foreign():
		c, err = t.openForeign(ctx)
	case t.name != "":
		c, err = t.openNamed()
	case t.keep:
		c, err = t.bootKept(ctx)
	default:
		c, err = t.boot(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.kubectl = kubectl
	return c, nil
}

// ownKubectl returns the path of a link to this binary that is named kubectl, for scripts; etcdctl is beside it.
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
func (t *suite) boot(ctx context.Context) (*target, error) {
	o, err := sandboxOptions(t.io.err, !t.verbose)
	if err != nil {
		return nil, err
	}
	if err := t.nodes.use(&o); err != nil {
		return nil, err
	}
	prepareTestLab(t, &o)
	t.sayBooting()
	began := time.Now()
	c, err := bootTarget(ctx, o)
	if err != nil {
		return nil, err
	}
	t.sayf("it is ready after %.2fs", time.Since(began).Seconds())
	if err := t.use(c); err != nil {
		return nil, errors.Join(err, c.leave(ctx, true))
	}
	return c, nil
}

// sayBooting says what takes its time, and what of it is not there.
func (t *suite) sayBooting() {
	t.sayf("booting a control plane")
	if t.nodes.fake {
		t.sayf(onlyAnswer)
	}
}

// bootKept starts a sandbox in the background, which stays when a test failed.
func (t *suite) bootKept(ctx context.Context) (*target, error) {
	if err := t.nodes.check(); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("test-%d", os.Getpid())
	t.sayBooting()
	record, err := startDetached(ctx, upFlags{name: name, fresh: true, nodes: t.nodes, listener: &t.listener}, func(s sandbox.Step) {
		if t.verbose {
			fmt.Fprintln(t.io.err, progressLine(s))
		}
	})
	if err != nil {
		return nil, err
	}
	c, err := t.openRecord(record)
	if err != nil {
		return nil, errors.Join(err, down(ctx, streams{err: io.Discard}, record, true))
	}
	before := c.leave
	c.leave = func(ctx context.Context, failed bool) error {
		if err := before(ctx, failed); err != nil {
			return err
		}
		if !failed {
			return down(ctx, streams{err: io.Discard}, record, true)
		}
		fmt.Fprintf(t.io.err, "sandbox %s stays; use it with 'operator-lab kubectl --name %s …', delete it with 'operator-lab down --name %s --delete'\n", name, name, name)
		return nil
	}
	return c, nil
}

// openNamed uses a sandbox that is running.
func (t *suite) openNamed() (*target, error) {
	record, err := running(t.name)
	if err != nil {
		return nil, sandboxError(err)
	}
	return t.openRecord(record)
}

func (t *suite) openRecord(record *sandbox.Record) (*target, error) {
	c, err := recordTarget(record)
	if err != nil {
		return nil, err
	}
	return c, t.use(c)
}

// use reads the kubeconfig of a target as flags would have it.
func (t *suite) use(c *target) error {
	if err := t.read(c, c.kubeconfig); err != nil {
		return err
	}
	c.config.QPS = c.Config().QPS
	return nil
}

// openForeign uses a cluster that is not the lab's.
func (t *suite) openForeign(ctx context.Context) (*target, error) {
	c := &target{leave: stays}
	if err := t.read(c, t.kubeconfig); err != nil {
		return nil, err
	}
	c.config.QPS, c.config.Burst = foreignQPS, foreignBurst
	if _, err := answers(ctx, c.config); err != nil {
		return nil, errors.Join(err, c.leave(ctx, false))
	}
	return c, nil
}

// read reads a kubeconfig, by default that of the environment, as flags would have it. Programs are given a copy when it
// differs from the file.
func (t *suite) read(c *target, file string) error {
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
	if c.config, err = loader.ClientConfig(); err != nil {
		return wrong(err)
	}
	if file != "" && !t.overrides() {
		c.kubeconfig, err = filepath.Abs(file)
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
	before := c.leave
	c.leave = func(ctx context.Context, failed bool) error {
		return errors.Join(before(ctx, failed), os.RemoveAll(dir))
	}
	c.kubeconfig = filepath.Join(dir, "kubeconfig")
	return clientcmd.WriteToFile(*merged, c.kubeconfig)
}

// overrides reports whether a flag overrules a kubeconfig.
func (t *suite) overrides() (given bool) {
	t.flags.Visit(func(f *pflag.Flag) { given = given || strings.HasPrefix(f.Name, "kube-") })
	return given
}

// answers returns the version of a cluster, or an error if it does not answer.
func answers(ctx context.Context, config *rest.Config) (version string, err error) {
	config = rest.CopyConfig(config)
	config.Timeout = answerTime
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", usageError("look at the kubeconfig", "use the cluster: %w", err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	var info apiversion.Info
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return "", &exitError{exitSandbox, &sandbox.Problem{
			Err: fmt.Errorf("the cluster at %s refuses the credentials: %w", config.Host, err), Hint: "try 'kubectl auth whoami' with the same kubeconfig",
		}}
	case err != nil:
		return "", &exitError{exitSandbox, &sandbox.Problem{
			Err:  fmt.Errorf("the cluster does not answer: %w", err),
			Hint: "try 'kubectl version' with the same kubeconfig, or leave it out to run in a sandbox",
		}}
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return "", &exitError{exitSandbox, &sandbox.Problem{
			Err: fmt.Errorf("%s is no API server: %w", config.Host, err), Hint: "look at the address in the kubeconfig",
		}}
	}
	return info.GitVersion, nil
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
