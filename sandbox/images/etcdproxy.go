package images

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// The subcommands of etcd by which it is a proxy of clients and no member.
const (
	etcdGRPCProxy = "grpc-proxy"
	etcdGateway   = "gateway"
)

// etcdProxyDefault is where a proxy listens that is told nothing else, and the address that it then gives clients.
const etcdProxyDefault = "127.0.0.1:23790"

// Flags of 'etcd grpc-proxy start'.
var (
	etcdProxySwitches = []string{
		"permit-without-stream", "insecure-discovery", "enable-pprof", "insecure-skip-tls-verify", "auto-tls", "debug",
		"experimental-serializable-ordering", "experimental-enable-grpc-logging", "help", "h",
	}
	etcdProxyPaths = []string{"cert", "key", "cacert", "cert-file", "key-file", "trusted-ca-file", "client-crl-file", "data-dir"}
)

// isEtcdProxy reports whether the arguments of etcd make it a proxy.
func isEtcdProxy(args []string) bool {
	return len(args) > 0 && (args[0] == etcdGRPCProxy || args[0] == etcdGateway)
}

// proxy starts a gRPC proxy: etcd grpc-proxy start.
func (i etcdImage) proxy(c *Container, cmd *exec.Cmd, args []string, env *variables) (Running, error) {
	if args[0] == etcdGateway {
		return nil, errors.New("etcd gateway: it would look for names of the cluster in the DNS of this machine; etcd grpc-proxy does not")
	}
	words := args[:min(len(args), 2)]
	s := &etcdSettings{
		container: c, env: env,
		flags: readFlags(args[len(words):], func(name string) bool { return slices.Contains(etcdProxySwitches, name) }),
	}
	if err := s.localizeProxy(); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.Stderr, "operator-lab: on this machine %s\n", strings.Join(s.listens, ", "))
	cmd.Args = slices.Concat([]string{etcdCommand}, words, s.arguments())
	cmd.Env = env.list()
	return spawn(i.guard, c, cmd)
}

// localizeProxy replaces files and addresses of the pod by those of this machine. The variables of etcd mean nothing to a proxy.
func (s *etcdSettings) localizeProxy() error {
	s.env = &variables{}
	for _, f := range []struct {
		name, value string // the value that it has by itself
		to          func(string) (string, error)
	}{
		{"listen-addr", etcdProxyDefault, s.listenAt},
		{"advertise-client-url", etcdProxyDefault, s.reach},
		{"endpoints", etcdEndpoint, s.reach},
		{"metrics-addr", "", s.listen},
	} {
		if f.value != "" && !s.has(f.name) {
			s.add(f.name, f.value)
		}
		if err := s.change(f.name, f.to); err != nil {
			return err
		}
	}
	for _, name := range etcdProxyPaths {
		if err := s.change(name, func(path string) (string, error) { return s.path(path), nil }); err != nil {
			return err
		}
	}
	return nil
}

// listenAt translates an address of the pod, host:port, to one of this machine.
func (s *etcdSettings) listenAt(address string) (string, error) {
	const scheme = "tcp://"
	at, err := s.listenURL(scheme + address)
	return strings.TrimPrefix(at, scheme), err
}

// reach translates those of a list of endpoints that are the pod's own, and that no other pod could mean.
func (s *etcdSettings) reach(list string) (string, error) {
	all := strings.Split(list, ",")
	for i, endpoint := range all {
		u, port, own := s.container.ownEndpoint(endpoint)
		if !own {
			continue
		}
		at, err := here(s.container, port)
		if err != nil {
			return "", err
		}
		u.Host = at
		all[i] = strings.TrimPrefix(u.String(), "//")
	}
	return strings.Join(all, ","), nil
}
