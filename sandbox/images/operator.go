package images

import (
	"fmt"
	"net"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// operator is a bundled operator: a process of the binary, as the service account of its pod.
type operator struct {
	guard  *guard.Guard
	binary string
	// name of the operator, and its variant unless the pod's arguments name another. Without a name the image has it, as in
	// quay.io/operator-lab/<name>-operator; without a variant it is the operator's default.
	name, variant string
	// own maps the flags of this operator that a pod may set to the operator's own names; the value is empty if the
	// name is the same.
	own map[string]string
	// commands are the files of the real image that run this operator.
	commands []string
	// settings returns additional arguments, given the pod's; may be nil.
	settings func(c *Container, args []string) []string
}

// operatorFlags are the flags of 'operator-lab operator <name>' that a pod may set, and whether their values are
// addresses to listen on.
var operatorFlags = map[string]bool{
	"namespace": false, "leader-elect": false, "variant": false, "seed": false, "song": false,
	"metrics-bind-address": true, "health-probe-bind-address": true,
}

// switches are the flags of operators that need no value.
var switches = []string{"leader-elect", "cluster-wide", "create-crd"}

// File implements [Program].
func (operator) File(string) (string, bool) { return "", false }

// Start implements [Program].
func (o operator) Start(c *Container) (Running, error) {
	if o.name == "" {
		image, err := parseName(c.Image)
		if err != nil {
			return nil, err
		}
		o.name = strings.TrimSuffix(path.Base(image.repository), "-operator")
	}
	if len(c.Command) > 0 {
		if r := shell(c, c.Command); r != nil {
			return r, nil
		}
	}
	file, err := writeKubeconfig(c)
	if err != nil {
		return begin(func(*task) int { //nolint:nilerr // as the operator itself, which would start and then say it
			fmt.Fprintf(c.Stderr, "operator-lab: the operator cannot run: %v\n", err)
			return 1
		}), nil
	}
	env, err := processEnvironment(c)
	if err != nil {
		return nil, err
	}
	if env.get("POD_NAMESPACE") == "" { // which it would find beside the token
		env.set("POD_NAMESPACE", c.Namespace)
	}
	fmt.Fprintf(c.Stderr, "operator-lab: %s is the bundled operator %s, a process of this machine, as the pod's service account\n", c.Image, o.name)
	if len(c.Command) > 0 && !slices.Contains(o.commands, path.Base(c.Command[0])) {
		fmt.Fprintf(c.Stderr, "operator-lab: not used, since it is a file of the real image: command %q\n", strings.Join(c.Command, " "))
	}
	args, ignored, err := o.args(c)
	if err != nil {
		return nil, err
	}
	if len(ignored) > 0 {
		fmt.Fprintf(c.Stderr, "operator-lab: not used, since the bundled operator does not know it: %s\n", strings.Join(ignored, " "))
	}
	return spawn(o.guard, c, &exec.Cmd{
		Path: o.binary, Args: slices.Concat([]string{"operator-lab", "operator", o.name, "--kubeconfig", file}, args),
		Dir: c.Dir, Env: env.list(),
	})
}

// args returns the operator's arguments, and the pod's arguments that it does not know.
func (o operator) args(c *Container) (args, ignored []string, err error) {
	if o.variant != "" {
		args = []string{"--variant=" + o.variant}
	}
	given := o.given(c)
	for i := 0; i < len(given); i++ {
		whole := given[i]
		key, value, hasValue := strings.Cut(strings.TrimLeft(whole, "-"), "=")
		key, address, known := o.flag(key)
		takes := !hasValue && !slices.Contains(switches, key) && i+1 < len(given) && !strings.HasPrefix(given[i+1], "-")
		if !strings.HasPrefix(whole, "-") || !known {
			ignored = append(ignored, whole)
			if takes && strings.HasPrefix(whole, "-") {
				i++
				ignored = append(ignored, given[i])
			}
			continue
		}
		if takes {
			i++
			value, hasValue = given[i], true
		}
		if address {
			if value, err = listenAddress(c, value); err != nil {
				return nil, nil, err
			}
		}
		if key == "data-dir" && value != "" {
			value = c.hostPath(value)
		}
		if hasValue {
			key += "=" + value
		}
		args = append(args, "--"+key)
	}
	if o.settings != nil {
		args = append(args, o.settings(c, args)...)
	}
	more, err := o.endpoints(c, args)
	return append(args, more...), ignored, err
}

// given returns the pod's arguments, without the command.
func (o operator) given(c *Container) []string {
	argv := slices.Concat(c.Command, c.Args)
	if len(c.Command) > 0 || len(argv) > 0 && slices.Contains(o.commands, path.Base(argv[0])) {
		return argv[1:]
	}
	return argv
}

// flag returns the operator's own name of a flag that a pod sets, and whether its value is an address to listen on.
func (o operator) flag(name string) (own string, address, known bool) {
	if renamed, has := o.own[name]; has {
		if renamed == "" {
			return name, strings.HasSuffix(name, "-bind-address"), true
		}
		return renamed, operatorFlags[renamed], true
	}
	address, known = operatorFlags[name]
	return name, address, known
}

// endpoints returns the flags for the ports that the pod declares and that its operator serves by default.
func (operator) endpoints(c *Container, args []string) (more []string, err error) {
	for _, e := range []struct {
		flag string
		port int
	}{{"--metrics-bind-address=", 8080}, {"--health-probe-bind-address=", 8081}} {
		set := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, e.flag) })
		if set || !slices.Contains(c.Ports, e.port) {
			continue
		}
		address, err := here(c, e.port)
		if err != nil {
			return nil, err
		}
		more = append(more, e.flag+address)
	}
	return more, nil
}

// listenAddress returns the address on this machine for an address of the pod. The pod's loopback is mapped like its
// only address.
func listenAddress(c *Container, address string) (string, error) {
	if _, text, err := net.SplitHostPort(address); err == nil {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil && port > 0 {
			return here(c, int(port))
		}
	}
	return address, nil // 0, which means none, or something that the operator complains about
}
