package images

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// variables are an environment: each once, in the order in which they came.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) get(name string) string { return v.values[name] }

// list returns the environment in the form for a process.
func (v *variables) list() []string {
	out := make([]string, len(v.names))
	for i, name := range v.names {
		out[i] = name + "=" + v.values[name]
	}
	return out
}

// environment returns the pod's environment, overridden by that of the images file, which knows better what the program
// needs on this machine.
func environment(c *Container, own []variable) *variables {
	v := &variables{}
	for _, pair := range c.Env {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			v.set(name, value)
		}
	}
	v.add(c, own)
	return v
}

// add adds the variables of an images file, which may refer to earlier ones.
func (v *variables) add(c *Container, own []variable) {
	for _, o := range own {
		v.set(o.name, Expand(o.value, v.known(c)))
	}
}

// known returns the values for $(NAME): variables, and properties of the pod that are always known, such as the address
// of a port that it does not declare.
func (v *variables) known(c *Container) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, ok := v.values[name]; ok {
			return value, true
		}
		if name == hostVariable {
			host, _, err := c.Network.HostAddress(anyPort)
			return host, err == nil
		}
		if number, is := strings.CutPrefix(name, portVariable); is {
			port, err := strconv.Atoi(number)
			if err != nil {
				return "", false
			}
			_, hostPort, err := c.Network.HostAddress(port)
			return strconv.Itoa(hostPort), err == nil
		}
		value, ok := map[string]string{
			"POD_NAME": c.Pod, "POD_NAMESPACE": c.Namespace, "POD_IP": c.IP, "NODE_NAME": c.Node,
		}[name]
		return value, ok
	}
}

// The variables that hold the address of a pod's port on this machine.
const (
	hostVariable = "LAB_HOST"
	portVariable = "LAB_PORT_" // and the port
)

// anyPort is used to find the host, which is the same for all ports of a pod.
const anyPort = 8080

// noProxy lists the addresses that a process reaches without the proxy.
const noProxy = "localhost,127.0.0.1,127.0.0.0/8,::1"

// processEnvironment returns the environment of a process on this machine that stands for a container.
//
// The pod's paths and addresses are only valid inside a container, so the lab's variables override them.
func processEnvironment(c *Container) (*variables, error) { return overlay(c, environment(c, nil)) }

// overlay adds the lab's variables to an environment.
func overlay(c *Container, v *variables) (*variables, error) {
	for i, port := range c.Ports {
		host, hostPort, err := c.Network.HostAddress(port)
		if err != nil {
			return nil, fmt.Errorf("port %d: %w", port, err)
		}
		v.set(hostVariable, host)
		v.set(portVariable+strconv.Itoa(port), strconv.Itoa(hostPort))
		if i == 0 {
			v.set("PORT", strconv.Itoa(hostPort))
		}
	}
	for _, s := range []variable{
		{"LAB_POD", c.Pod},
		{"LAB_NAMESPACE", c.Namespace},
		{"LAB_POD_IP", c.IP},
		{"LAB_NODE", c.Node},
		{"LAB_CONTAINER", c.Name},
		{"LAB_IMAGE", c.Image},
		{"HOME", c.Dir},
		{"TMPDIR", c.Dir}, // removed with the container
		{"PATH", os.Getenv("PATH")},
	} {
		v.set(s.name, s.value)
	}
	if proxy := c.Network.Proxy(); proxy != "" {
		for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
			v.set(name, proxy)
		}
		v.set("NO_PROXY", noProxy)
		v.set("no_proxy", noProxy)
	}
	// Without a token the process has no identity. It must not use the user's own kubeconfig, which is not in this
	// HOME.
	v.set("KUBECONFIG", filepath.Join(c.Dir, kubeconfigFile))
	return v, nil
}

// expandAll replaces $(NAME) in all of a command.
func expandAll(argv []string, value func(string) (string, bool)) []string {
	out := make([]string, len(argv))
	for i := range argv {
		out[i] = Expand(argv[i], value)
	}
	return out
}

// here returns the address on this machine on which a program must listen to serve a port of its pod.
func here(c *Container, port int) (string, error) {
	host, hostPort, err := c.Network.HostAddress(port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(hostPort)), nil
}
