package images

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/server/v3/embed"
	"sigs.k8s.io/yaml"
)

// etcdConfigFile is the name of the translated configuration file in a container's directory.
const etcdConfigFile = "etcd.yaml"

// The sections of a configuration file of etcd that name files.
var etcdSecurity = []string{"client-transport-security", "peer-transport-security"}

// configure translates a configuration file for this machine. It leaves a file that cannot be read for etcd to report.
func (s *etcdSettings) configure(file string) (string, error) {
	file = s.path(file)
	content, err := os.ReadFile(file)
	if err != nil {
		return file, nil //nolint:nilerr // etcd says so
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return file, nil //nolint:nilerr // as above
	}
	places(config, etcdPaths, s.path)
	for _, name := range etcdSecurity {
		section, _ := config[name].(map[string]any)
		places(section, etcdPaths, s.path)
	}
	for name, to := range etcdLists {
		if text, is := config[name].(string); is {
			config[name] = to(s, text)
		}
	}
	if outputs, is := config["log-outputs"].([]any); is {
		for i, output := range outputs {
			if text, is := output.(string); is {
				outputs[i] = s.logOutputs(text)
			}
		}
	}
	if config["listen-peer-urls"] == nil { // or it would be etcd's own address, of this machine
		config["listen-peer-urls"] = embed.DefaultListenPeerURLs
	}
	if config["listen-client-urls"] == nil {
		config["listen-client-urls"] = embed.DefaultListenClientURLs
		if config["advertise-client-urls"] == nil { // as etcd does it
			config["advertise-client-urls"] = embed.DefaultAdvertiseClientURLs
		}
	}
	for _, name := range etcdListens {
		text, is := config[name].(string)
		if !is {
			continue
		}
		if config[name], err = s.listen(text); err != nil {
			return "", err
		}
	}
	if config["heartbeat-interval"] == nil && config["election-timeout"] == nil {
		config["heartbeat-interval"], config["election-timeout"] = etcdHeartbeat, etcdElection
	}
	if peers, is := config["peer-transport-security"].(map[string]any); is && peers["skip-client-san-verification"] == nil {
		peers["skip-client-san-verification"] = true
		s.notes = append(s.notes, skippedPeerAddresses)
	}
	if content, err = yaml.Marshal(config); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	own := filepath.Join(s.container.Dir, etcdConfigFile)
	return own, os.WriteFile(own, content, 0o600)
}

// places changes the values of some keys that are paths.
func places(config map[string]any, keys []string, to func(string) string) {
	for key, value := range config {
		if text, is := value.(string); is && slices.Contains(keys, key) {
			config[key] = to(text)
		}
	}
}
