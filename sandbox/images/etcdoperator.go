package images

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// etcdOperator is the bundled operator etcd. Its image has three commands, which are one program here, and a fourth
// that is not an operator: the agent, which transfers backups.
type etcdOperator struct{ operator }

// The commands of the image, and the controller of each.
const (
	etcdClusterCommand = "etcd-operator"
	etcdBackupCommand  = "etcd-backup-operator"
	etcdRestoreCommand = "etcd-restore-operator"

	etcdAgentVerb = "agent"
)

// newEtcdOperator returns the image of etcd-operator: an operator with commands and flags of its own.
func newEtcdOperator(o operator) etcdOperator {
	o.commands = []string{etcdClusterCommand, etcdBackupCommand, etcdRestoreCommand}
	o.own = map[string]string{
		"period": "", "cluster-wide": "", "create-crd": "", "agent-image": "", "controllers": "",
		// As published.
		"listen-addr": "metrics-bind-address",
	}
	o.settings = o.etcdSettings
	return etcdOperator{o}
}

// Start implements [Program].
func (o etcdOperator) Start(c *Container) (Running, error) {
	argv := slices.Concat(c.Command, c.Args)
	if len(c.Command) == 0 && (len(argv) == 0 || !slices.Contains(o.commands, path.Base(argv[0]))) {
		argv = slices.Insert(argv, 0, etcdClusterCommand)
	}
	if len(argv) > 1 && path.Base(argv[0]) == etcdClusterCommand && argv[1] == etcdAgentVerb {
		return o.agent(c, argv[2:])
	}
	return o.operator.Start(c)
}

// etcdSettings returns the additional arguments for a command of the image.
func (o operator) etcdSettings(c *Container, args []string) (more []string) {
	set := func(name string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return a == "--"+name || strings.HasPrefix(a, "--"+name+"=") })
	}
	command := etcdClusterCommand
	if argv := slices.Concat(c.Command, c.Args); len(argv) > 0 && slices.Contains(o.commands, path.Base(argv[0])) {
		command = path.Base(argv[0])
	}
	// The published one without arguments is one of three programs, which defines its resources itself.
	variant := o.variant
	for _, a := range args {
		if v, is := strings.CutPrefix(a, "--variant="); is {
			variant = v
		}
	}
	published := variant == "classic"
	controller := map[string]string{etcdBackupCommand: "etcdbackup", etcdRestoreCommand: "etcdrestore"}[command]
	if controller == "" && published {
		controller = "etcdcluster"
	}
	if controller != "" && !set("controllers") {
		more = append(more, "--controllers="+controller)
	}
	if published && !set("create-crd") {
		more = append(more, "--create-crd")
	}
	// A variable names its own namespace.
	env := environment(c, nil)
	namespace := env.get("MY_POD_NAMESPACE")
	if published {
		namespace = cmp.Or(namespace, c.Namespace)
	}
	clusterWide := slices.Contains(args, "--cluster-wide") || slices.Contains(args, "--cluster-wide=true")
	if namespace != "" && !clusterWide && !set("namespace") && env.get("WATCH_NAMESPACE") == "" {
		more = append(more, "--namespace="+namespace)
	}
	return more
}

// agent starts the agent. It needs no token, only the volumes of its pod.
func (o etcdOperator) agent(c *Container, args []string) (Running, error) {
	fmt.Fprintf(c.Stderr, "operator-lab: %s is the agent of the bundled operator %s, a process of this machine\n", c.Image, o.name)
	return runOwn(o.guard, o.binary, c, []string{"operator-lab", "operator", o.name, etcdAgentVerb}, args)
}

// runOwn runs the binary as a command, with arguments of the pod, which may name files in volumes. It is the pod's service
// account, if that has a token.
func runOwn(g *guard.Guard, binary string, c *Container, command, args []string) (Running, error) {
	env, err := processEnvironment(c)
	if err != nil {
		return nil, err
	}
	root, err := plant(c, nil)
	if err != nil {
		return nil, err
	}
	env.set("LAB_ROOT", root)
	if _, err := writeKubeconfig(c); err != nil && !errors.Is(err, errNoToken) && !errors.Is(err, errNoServer) {
		return nil, err
	}
	return spawn(g, c, &exec.Cmd{Path: binary, Args: slices.Concat(command, c.mountedArguments(args)), Dir: c.Dir, Env: env.list()})
}

// mountedArguments replaces paths in a volume by those of this machine. All other arguments stay, because they may be
// anything, such as keys of S3.
func (c *Container) mountedArguments(args []string) []string {
	return mapArguments(args, func(name string) string {
		if host, mounted := c.mountOf(name); mounted {
			return host
		}
		return name
	})
}

// mapArguments changes absolute paths, alone or as values of flags.
func mapArguments(args []string, to func(string) string) []string {
	out := slices.Clone(args)
	for i, a := range args {
		before, name := "", a
		if strings.HasPrefix(a, "-") {
			key, value, assigned := strings.Cut(a, "=")
			if !assigned {
				continue
			}
			before, name = key+"=", value
		}
		if strings.HasPrefix(name, "/") {
			out[i] = before + to(name)
		}
	}
	return out
}
