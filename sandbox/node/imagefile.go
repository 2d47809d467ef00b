package node

import (
	"fmt"
	"strings"
)

// imageFile returns the content of a file of the image, or of one that a container runtime adds.
func (c *container) imageFile(path string) (string, bool) {
	switch path {
	case "/etc/hostname":
		return c.hostname() + "\n", true
	case "/etc/resolv.conf":
		return c.resolvConf(), true
	}
	return c.program.File(path)
}

// resolvConf returns the kubelet's DNS settings. Programs do not use these name servers: the pod network resolves
// names.
func (c *container) resolvConf() string {
	dns := c.pod.config.GetDnsConfig()
	var text strings.Builder
	if searches := dns.GetSearches(); len(searches) > 0 {
		fmt.Fprintln(&text, "search", strings.Join(searches, " "))
	}
	for _, server := range dns.GetServers() {
		fmt.Fprintln(&text, "nameserver", server)
	}
	if options := dns.GetOptions(); len(options) > 0 {
		fmt.Fprintln(&text, "options", strings.Join(options, " "))
	}
	return text.String()
}
