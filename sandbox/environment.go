package sandbox

import (
	"path/filepath"

	podnet "github.com/operator-lab/operator-lab/sandbox/network"
)

// KubectlCache returns where kubectl caches the API of the sandbox in a directory. It is deleted with the sandbox.
func KubectlCache(dir string) string { return filepath.Join(dir, "kubectl") }

// Environment returns the variables, as NAME=value, for programs that use the sandbox in a directory: kubectl caches what it
// learns there instead of in ~/.kube, and with a proxy curl and etcdctl resolve the names of the cluster.
func Environment(dir, proxy string) []string {
	variables := []string{"KUBECACHEDIR=" + KubectlCache(dir)}
	if proxy != "" {
		variables = append(variables, podnet.ProxyEnvironment(proxy)...)
	}
	return variables
}
