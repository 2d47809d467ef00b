package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/oauth2"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// userCluster is a cluster of the user's, with the permissions that a kubeconfig gives. Nothing is written into that file.
type userCluster struct {
	config *rest.Config
	// file is the kubeconfig, context the context in it.
	file, context string
	// install says that the manifests are applied there.
	install bool
	// version is that of the cluster, once it has answered.
	version string
}

// clusterFlags name a cluster of the user's, in which their operator runs in place of a sandbox.
type clusterFlags struct {
	kubeconfig, context string
	install             bool
}

// bind adds the flags; use says what --kubeconfig does.
func (f *clusterFlags) bind(flags *pflag.FlagSet, use string) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", use)
	flags.StringVar(&f.context, "context", "", "context of that kubeconfig (default: its current one)")
	flags.BoolVar(&f.install, "install", false, "apply the manifests to that cluster, too")
}

// open returns the cluster that the flags name; nil for a sandbox.
func (f *clusterFlags) open(flags *pflag.FlagSet) (*userCluster, error) {
	if f.kubeconfig == "" {
		switch {
		case flags.Changed("kubeconfig"):
			return nil, usageError("name a file", "--kubeconfig is empty")
		case f.context != "" || f.install:
			return nil, usageError("name the cluster with --kubeconfig FILE", "--context and --install are for a cluster of yours")
		}
		return nil, nil
	}
	for _, name := range []string{"name", "keep", "nodes", "fake", "images", "olm", "catalog"} { // not all commands have all
		if flags.Changed(name) {
			return nil, usageError("leave one of them out", "--%s is for a sandbox, and --kubeconfig for a cluster of yours", name)
		}
	}
	c, err := openKubeconfig(f.kubeconfig, f.context)
	if err == nil {
		c.install = f.install
	}
	return c, err
}

// inCluster has the suite's one operator run in the cluster that flags name, if they do.
func (t *suite) inCluster(f clusterFlags, flags *pflag.FlagSet) (err error) {
	t.cluster, err = f.open(flags)
	if name := t.operators[0]; err == nil && t.cluster != nil && !isPath(name) {
		return usageError("name the directory of your own, or leave --kubeconfig out", "--kubeconfig is for an operator of yours, and %s is a bundled one", name)
	}
	return err
}

// openKubeconfig reads a kubeconfig.
func openKubeconfig(file, context string) (*userCluster, error) {
	raw, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}).Load()
	if err != nil {
		return nil, usageError("name the kubeconfig of a cluster, or leave --kubeconfig out to run in a sandbox", "read the kubeconfig: %w", err)
	}
	c := &userCluster{file: file, context: context}
	known := slices.Sorted(maps.Keys(raw.Contexts))
	if c.context == "" {
		c.context = raw.CurrentContext
	}
	if raw.Contexts[c.context] == nil {
		hint := "it has none"
		if len(known) > 0 {
			hint = "it has " + strings.Join(known, ", ")
		}
		if c.context == "" {
			return nil, usageError("choose one with --context: "+hint, "%s has no current context", file)
		}
		return nil, usageError(meant(c.context, known)+hint, "%s has no context %q", file, c.context)
	}
	// Without an access to the file nothing can write new tokens into it.
	c.config, err = clientcmd.NewNonInteractiveClientConfig(*raw, c.context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, usageError("look at the kubeconfig", "context %s of %s: %w", c.context, file, err)
	}
	c.config.QPS, c.config.Burst = foreignQPS, foreignBurst
	return c, nil
}

// String names the cluster: its address, and where that is from.
func (c *userCluster) String() string {
	return fmt.Sprintf("%s (context %s of %s)", c.config.Host, c.context, c.file)
}

// target returns the cluster as the target of a run, once it answers.
func (c *userCluster) target(ctx context.Context) (t *target, err error) {
	if c.version, err = answers(ctx, c.config); err != nil {
		return nil, err
	}
	return &target{Cluster: c, leave: stays}, nil
}

// Config returns the user's own credentials.
func (c *userCluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// accountPrefix begins the user name of a service account: its namespace and its name follow.
const accountPrefix = "system:serviceaccount:"

// User returns credentials for a service account. They are tokens that the cluster issues, renewed before they expire.
func (c *userCluster) User(name string, _ ...string) (*rest.Config, error) {
	account, is := strings.CutPrefix(name, accountPrefix)
	namespace, account, named := strings.Cut(account, ":")
	if !is || !named {
		return nil, fmt.Errorf("a cluster of yours gives no credentials for %s", name)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.Wrap(transport.TokenSourceWrapTransport(transport.NewCachedTokenSource(accountTokens{c, namespace, account})))
	return config, nil
}

// DialContext connects to an address that this machine reaches by itself.
func (c *userCluster) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// accountTokens are the tokens of a service account.
type accountTokens struct {
	cluster            *userCluster
	namespace, account string
}

// Token asks the cluster for a token.
func (a accountTokens) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	c, err := kubernetes.NewForConfig(a.cluster.config)
	if err != nil {
		return nil, err
	}
	answer, err := c.CoreV1().ServiceAccounts(a.namespace).CreateToken(ctx, a.account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: answer.Status.Token, Expiry: answer.Status.ExpirationTimestamp.Time}, nil
}

// prepareCluster applies the manifests to a cluster of the user's if they said so, and else looks at what is missing there.
// Then it decides with whose permissions the operator runs.
func (o *ownOperator) prepareCluster(ctx context.Context) error {
	note := func(kind project.NoteKind, values ...any) {
		o.plan.Notes = append(o.plan.Notes, project.Note{Kind: kind, Values: values})
	}
	if o.cluster.install {
		if err := project.ApplyAll(ctx, o.cluster, o.plan.Objects, o.plan.Namespace); err != nil {
			return &sandbox.Problem{Err: err, Hint: "leave --install out, and install what the operator needs as you usually do"}
		}
	}
	c, err := client.New(o.cluster.Config(), client.Options{})
	if err != nil {
		return err
	}
	missing, err := o.missing(ctx, c)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		note(project.ClusterLacks, strings.Join(missing, ", "))
	}
	if len(o.plan.Webhooks) > 0 {
		note(project.ClusterWebhooks)
	}
	if err := o.tellDeployed(ctx, c, note); err != nil {
		return err
	}
	account := o.plan.ServiceAccount
	if account == "" {
		return nil
	}
	switch _, err := (accountTokens{o.cluster, o.plan.Namespace, account}).Token(); {
	case err == nil:
		note(project.ClusterAccount, o.plan.Namespace, account)
		return nil
	case apierrors.IsNotFound(err):
		note(project.ClusterNoAccount, o.plan.Namespace, account)
	case apierrors.IsForbidden(err):
		note(project.ClusterNoToken, o.plan.Namespace, account)
	default:
		return sandboxError(fmt.Errorf("get a token for ServiceAccount %s/%s: %w", o.plan.Namespace, account, err))
	}
	o.plan.ServiceAccount = ""
	return nil
}

// meetCluster says what prepareCluster has found, in a cluster of the user's. Without the kinds of the manifests there is nothing to
// measure.
func (o *ownOperator) meetCluster() error {
	if o.cluster == nil {
		return nil
	}
	if len(o.lacks) > 0 {
		return &exitError{exitSandbox, &sandbox.Problem{
			Err: fmt.Errorf("the cluster does not have CustomResourceDefinition %s", strings.Join(o.lacks, ", ")), Hint: "make install, or --install",
		}}
	}
	describeNotes(func(name, format string, args ...any) { o.say("%-10s %s", name, fmt.Sprintf(format, args...)) }, o.plan.Notes)
	return nil
}

// missing returns which objects of the manifests the cluster does not have, as far as the user may look.
func (o *ownOperator) missing(ctx context.Context, c client.Client) (missing []string, err error) {
	for _, u := range o.plan.Objects {
		key := client.ObjectKeyFromObject(u)
		namespaced, err := c.IsObjectNamespaced(u)
		if err == nil {
			if namespaced && key.Namespace == "" {
				key.Namespace = o.plan.Namespace
			}
			err = c.Get(ctx, key, u.DeepCopy())
		}
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			missing = append(missing, u.GetKind()+" "+filepath.Join(key.Namespace, key.Name))
			if u.GetKind() == "CustomResourceDefinition" {
				o.lacks = append(o.lacks, u.GetName())
			}
		case err != nil && !apierrors.IsForbidden(err):
			return nil, sandboxError(err)
		}
	}
	return missing, nil
}

// tellDeployed notes if the operator runs in the cluster, too.
func (o *ownOperator) tellDeployed(ctx context.Context, c client.Client, note func(project.NoteKind, ...any)) error {
	for _, l := range o.plan.LeftOut {
		if l.Kind != "Deployment" {
			continue
		}
		namespace := l.Namespace
		if namespace == "" {
			namespace = o.plan.Namespace
		}
		d := &appsv1.Deployment{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: l.Name}, d)
		switch {
		case err == nil && d.Status.Replicas > 0:
			note(project.ClusterDeployed, namespace, l.Name)
		case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return sandboxError(errors.Join(errors.New("look for the operator's Deployment"), err))
		}
	}
	return nil
}

// contextsOf completes --context.
func contextsOf(cmd *cobra.Command) []string {
	file := cmd.Flag("kubeconfig").Value.String()
	raw, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}).Load()
	if file == "" || err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}
