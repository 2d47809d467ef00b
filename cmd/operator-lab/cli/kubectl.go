package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/network"
)

func kubectlCommand(programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--name sandbox] [kubectl arguments…]",
		Short: "Run kubectl against a sandbox",
		Long: `Run upstream's kubectl, linked into this binary, against a sandbox. --name chooses the sandbox
and comes first; everything else is kubectl's. Without it, it is the sandbox default, or the only one
that runs.`,
		Example: `  operator-lab kubectl get pods -A
  operator-lab kubectl --name demo apply -f hikawa.yaml`,
		DisableFlagParsing: true, // all flags but a leading --name are kubectl's
		ValidArgsFunction:  completeLinked(programs.Kubectl, "kubectl"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, args, err := leadingName(args)
			if err != nil {
				return err
			}
			return programs.kubectl(name, args)
		},
	}
}

// kubectl runs kubectl in this process, against a sandbox.
func (p Programs) kubectl(name string, args []string) error {
	if !needsCluster(args) {
		return runLinked(p.Kubectl, "kubectl", args)
	}
	r, err := running(name)
	if err != nil {
		return err
	}
	// What kubectl learns of a sandbox goes with the sandbox, not into the person's ~/.kube.
	if err := errors.Join(
		os.Setenv("KUBECONFIG", r.Kubeconfig()),
		os.Setenv("KUBECACHEDIR", sandbox.KubectlCache(r.Dir)),
	); err != nil {
		return err
	}
	if namesLabKinds(args) && !hasLab(r) { // said before: kubectl ends this process when it fails
		fmt.Fprintf(os.Stderr, "hint: sandbox %s has no lab: Fault, Loop and Operator are there while 'operator-lab run', "+
			"'operator-lab lesson' or 'operator-lab test' uses a sandbox; 'operator-lab list' shows them, --name chooses one\n", r.Name)
	}
	return runLinked(p.Kubectl, "kubectl", args)
}

// labKinds matches what kubectl is told of the lab's kinds: as resources, or in a file.
var labKinds = regexp.MustCompile(`^(?i:(fault|loop)s?|(fault|loop|operator)s?\.operator-lab\.dev)(/|,|$)`)

// namesLabKinds reports whether arguments of kubectl are about kinds of the lab.
func namesLabKinds(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		if labKinds.MatchString(arg) {
			return true
		}
		_, file, found := strings.Cut(arg, "=")
		if !found {
			file = strings.TrimPrefix(arg, "-f")
		}
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "apiVersion: "+v1alpha1.GroupVersion.Group+"/")
	})
}

// hasLab reports whether the kinds of the lab are there in a sandbox.
func hasLab(r *sandbox.Record) bool {
	box, err := r.Open()
	if err != nil {
		return true // nothing is known of it
	}
	client, err := discovery.NewDiscoveryClientForConfig(box.Config())
	if err != nil {
		return true
	}
	_, err = client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	return !apierrors.IsNotFound(err)
}

// runLinked runs a program in this process, by its name and with its arguments. Ctrl-C is the program's.
func runLinked(program func() int, name string, args []string) error {
	signal.Reset()
	os.Args = append([]string{name}, args...)
	if code := program(); code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

// leadingName removes a leading --name from the arguments and returns its value. Default: the default sandbox.
func leadingName(args []string) (name string, rest []string, err error) {
	if len(args) == 0 {
		return sandbox.DefaultName, args, nil
	}
	if value, ok := strings.CutPrefix(args[0], "--name="); ok {
		return value, args[1:], nil
	}
	if args[0] != "--name" {
		return sandbox.DefaultName, args, nil
	}
	if len(args) == 1 {
		return "", nil, usageError("such as 'operator-lab kubectl --name demo get pods'", "--name needs the name of a sandbox")
	}
	return args[1], args[2:], nil
}

// needsCluster reports whether kubectl's arguments need a sandbox: not if they only print help, or name a cluster.
func needsCluster(args []string) bool {
	if len(args) == 0 {
		return false
	}
	for _, arg := range args {
		switch {
		case arg == "--":
			return true
		case arg == "--help", arg == "-h", arg == "--kubeconfig", strings.HasPrefix(arg, "--kubeconfig="):
			return false
		}
	}
	switch args[0] {
	case "version":
		return !slices.Contains(args, "--client") && !slices.Contains(args, "--client=true")
	case "help", "completion", "kustomize", "options", "plugin", "__complete", "__completeNoDesc":
		return false
	}
	return true
}

func envCommand(io streams) *cobra.Command {
	var name string
	var proxy bool
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the shell variables that point other tools at a sandbox",
		Example: `  eval "$(operator-lab env)"
  kubectl get pods`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := running(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(io.out, "export KUBECONFIG=%s\n", shellQuote(r.Kubeconfig()))
			if proxy {
				for _, variable := range network.ProxyEnvironment(r.Proxy) {
					key, value, _ := strings.Cut(variable, "=")
					fmt.Fprintf(io.out, "export %s=%s\n", key, shellQuote(value))
				}
			}
			return nil
		},
	}
	nameFlag(cmd, &name)
	cmd.Flags().BoolVar(&proxy, "proxy", false, "also http_proxy and its kin, so that the cluster's names can be asked")
	return cmd
}

// shellQuote quotes a word for a POSIX shell, if necessary.
func shellQuote(s string) string {
	if strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:,@%=", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
