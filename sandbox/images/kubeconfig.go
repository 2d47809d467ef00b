package images

import (
	"errors"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// tokenDir is the directory with the token of a pod's service account.
const tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// kubeconfigFile is the name of the kubeconfig in a container's directory.
const kubeconfigFile = "kubeconfig"

// Reasons why a pod cannot reach the API server.
var (
	errNoToken  = errors.New("the pod has no service account token: automountServiceAccountToken is false, for the pod or its service account")
	errNoServer = errors.New("there is no API server that a process of this node can reach")
)

// writeKubeconfig writes a kubeconfig with which a process on this machine acts as the pod's service account.
func writeKubeconfig(c *Container) (file string, err error) {
	token, ca, err := accountFiles(c)
	if err != nil {
		return "", err
	}
	const name = "lab"
	config, err := yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters":        []any{named("cluster", map[string]any{"server": c.APIServer, "certificate-authority": ca})},
		"users":           []any{named("user", map[string]any{"tokenFile": token})},
		"contexts": []any{named("context", map[string]any{
			"cluster": name, "user": name, "namespace": c.Namespace,
		})},
	})
	if err != nil {
		return "", err
	}
	file = filepath.Join(c.Dir, kubeconfigFile)
	return file, os.WriteFile(file, config, 0o600)
}

// accountFiles returns the files with the token of a pod's service account and with the authority of the API server. The token
// is replaced before it expires, so it is named, not copied.
func accountFiles(c *Container) (token, ca string, err error) {
	dir := ""
	for _, m := range c.Mounts {
		if filepath.Clean(m.ContainerPath) == tokenDir {
			dir = m.HostPath
		}
	}
	if dir == "" {
		return "", "", errNoToken
	}
	if c.APIServer == "" {
		return "", "", errNoServer
	}
	token, ca = filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	for _, f := range []string{token, ca} {
		if _, err := os.Stat(f); err != nil {
			return "", "", err
		}
	}
	return token, ca, nil
}

// named is an item of a list of a kubeconfig.
func named(kind string, what map[string]any) map[string]any {
	return map[string]any{"name": "lab", kind: what}
}
