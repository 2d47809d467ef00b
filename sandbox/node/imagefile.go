package node

import (
	"fmt"
	"strings"
)

// imageFile is the content of a file that the container has without a volume: of its image, or what a runtime puts there.
func (c *container) imageFile(path string) (string, bool) {
	switch path {
	case "/etc/hostname":
		return c.hostname() + "\n", true
	case "/etc/resolv.conf":
		return c.resolvConf(), true
	}
	return c.program.File(path)
}

// resolvConf is what the kubelet says of name servers. Programs do not ask them: the pod network knows the names.
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
