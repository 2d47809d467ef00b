package sandbox

import (
	"errors"
	"io/fs"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextName returns the name that a sandbox has as cluster, user and context in a kubeconfig.
func contextName(name string) string { return "operator-lab-" + name }

// KubeconfigOf renders a client's credentials as a kubeconfig with one context. The namespace is the context's; empty means
// "default".
func KubeconfigOf(name, namespace string, config *rest.Config) ([]byte, error) {
	k := kubeconfigOf(name, config)
	if namespace != "" {
		k.Contexts[name].Namespace = namespace
	}
	return clientcmd.Write(*k)
}

func kubeconfigOf(name string, config *rest.Config) *clientcmdapi.Config {
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	k.CurrentContext = name
	return k
}

// writeKubeconfig writes a kubeconfig. It keeps the namespace that somebody chose for the context since it was last
// written.
func writeKubeconfig(path, name string, config *rest.Config) error {
	k := kubeconfigOf(name, config)
	if before, err := clientcmd.LoadFromFile(path); err == nil && before.Contexts[name] != nil {
		k.Contexts[name].Namespace = before.Contexts[name].Namespace
	}
	b, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	return writeFile(path, b)
}

// MergeKubeconfig adds a sandbox's context to the kubeconfig file at path and makes it the current one; whatever
// else is in the file stays. A missing file is made. It returns the context that was current before.
func MergeKubeconfig(path, name string, config *rest.Config) (previous string, err error) {
	err = editKubeconfig(path, func(k *clientcmdapi.Config) {
		previous = k.CurrentContext
		add := kubeconfigOf(contextName(name), config)
		for key := range add.Contexts {
			k.Clusters[key], k.AuthInfos[key], k.Contexts[key] = add.Clusters[key], add.AuthInfos[key], add.Contexts[key]
		}
		k.CurrentContext = add.CurrentContext
	})
	return previous, err
}

// UnmergeKubeconfig takes a sandbox's context out of the kubeconfig file again, and makes the previous one current if
// the sandbox's still is. Nothing happens when it is not in the file.
func UnmergeKubeconfig(path, name, previous string) error {
	key := contextName(name)
	k, err := loadOrNew(path)
	if err != nil {
		return err
	}
	if k.Contexts[key] == nil {
		return nil
	}
	return editKubeconfig(path, func(k *clientcmdapi.Config) {
		delete(k.Clusters, key)
		delete(k.AuthInfos, key)
		delete(k.Contexts, key)
		if k.CurrentContext == key {
			k.CurrentContext = previous
		}
	})
}

func editKubeconfig(path string, edit func(*clientcmdapi.Config)) error {
	k, err := loadOrNew(path)
	if err != nil {
		return err
	}
	edit(k)
	return clientcmd.WriteToFile(*k, path) // mode 0600
}

func loadOrNew(path string) (*clientcmdapi.Config, error) {
	k, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clientcmdapi.NewConfig(), nil
	}
	return k, err
}
