package images

import (
	"flag"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdSettings are the pod's settings for etcd: arguments and ETCD_ variables. They are passed on unchanged, except for
// addresses to listen on and paths, which are only valid in a container.
type etcdSettings struct {
	container *Container
	flags     []flagArg
	env       *variables
	// dropped are flags that this etcd does not have.
	dropped []string
	// listens are the addresses on this machine; notes are further lines for the log.
	listens, notes []string
}

// Flags of etcd whose values are true in a container only.
var (
	etcdListens = []string{"listen-peer-urls", "listen-client-urls", "listen-client-http-urls", "listen-metrics-urls"}
	etcdPaths   = []string{
		"data-dir", "wal-dir",
		"cert-file", "key-file", "client-cert-file", "client-key-file", "trusted-ca-file", "client-crl-file",
		"peer-cert-file", "peer-key-file", "peer-client-cert-file", "peer-client-key-file", "peer-trusted-ca-file", "peer-crl-file",
		"discovery-cert", "discovery-key", "discovery-cacert",
	}
)

// The timing of raft: ten times as fast as etcd's own, for members that are all on one machine.
const (
	etcdHeartbeat = 50
	etcdElection  = 500
)

// etcdFlags are all flags of etcd, and whether they are switches.
var etcdFlags = sync.OnceValue(func() map[string]bool {
	all := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(all)
	known := map[string]bool{}
	all.VisitAll(func(f *flag.Flag) {
		b, is := f.Value.(interface{ IsBoolFlag() bool })
		known[f.Name] = is && b.IsBoolFlag()
	})
	// Those of its main package.
	for _, name := range []string{"config-file", "discovery-fallback", "initial-cluster-state", "v2-deprecation"} {
		known[name] = false
	}
	for _, name := range []string{"version", "help", "h"} {
		known[name] = true
	}
	return known
})

// etcdVariable returns the environment variable of a flag.
func etcdVariable(name string) string {
	return "ETCD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// readEtcd reads the pod's settings.
func readEtcd(c *Container, args []string, env *variables) *etcdSettings {
	s := &etcdSettings{container: c, env: env}
	known := etcdFlags()
	for _, f := range readFlags(args, func(name string) bool { return known[name] }) {
		if _, is := known[f.name]; !is && f.name != "" {
			s.dropped = append(s.dropped, f.text())
			continue
		}
		s.flags = append(s.flags, f)
	}
	return s
}

// get returns the pod's value of a flag; false if it is not set.
func (s *etcdSettings) get(name string) (string, bool) {
	for _, f := range slices.Backward(s.flags) {
		if f.name == name {
			return f.value, true
		}
	}
	value := s.env.get(etcdVariable(name))
	return value, value != ""
}

func (s *etcdSettings) has(name string) bool {
	_, has := s.get(name)
	return has
}

// change changes the pod's value of a flag, if it is set.
func (s *etcdSettings) change(name string, to func(string) (string, error)) error {
	for i, f := range s.flags {
		if f.name != name || !f.hasValue {
			continue
		}
		value, err := to(f.value)
		if err != nil {
			return err
		}
		s.flags[i].value = value
	}
	if value := s.env.get(etcdVariable(name)); value != "" {
		value, err := to(value)
		if err != nil {
			return err
		}
		s.env.set(etcdVariable(name), value)
	}
	return nil
}

// add adds a flag before all arguments.
func (s *etcdSettings) add(name, value string) {
	s.flags = slices.Insert(s.flags, 0, flagArg{name, value, true})
}

// localize replaces files and addresses of the pod by those of this machine.
func (s *etcdSettings) localize() error {
	if s.has("version") || s.has("help") || s.has("h") {
		return nil
	}
	for _, name := range etcdPaths {
		if err := s.change(name, func(path string) (string, error) { return s.path(path), nil }); err != nil {
			return err
		}
	}
	for name, to := range etcdLists {
		if err := s.change(name, func(list string) (string, error) { return to(s, list), nil }); err != nil {
			return err
		}
	}
	if s.has("config-file") { // and etcd ignores everything else
		return s.change("config-file", s.configure)
	}
	if !s.has("listen-peer-urls") {
		s.add("listen-peer-urls", embed.DefaultListenPeerURLs)
	}
	if !s.has("listen-client-urls") {
		s.add("listen-client-urls", embed.DefaultListenClientURLs)
		if !s.has("advertise-client-urls") { // as etcd does it, but only where it chooses where to listen
			s.add("advertise-client-urls", embed.DefaultAdvertiseClientURLs)
		}
	}
	for _, name := range etcdListens {
		if err := s.change(name, s.listen); err != nil {
			return err
		}
	}
	if !s.has("heartbeat-interval") && !s.has("election-timeout") {
		s.add("heartbeat-interval", strconv.Itoa(etcdHeartbeat))
		s.add("election-timeout", strconv.Itoa(etcdElection))
	}
	s.skipPeerAddresses()
	return nil
}

// skippedPeerAddresses is the note about it in the log.
const skippedPeerAddresses = "the certificate of a peer is not compared with the address that it calls from, which is one of " +
	"this machine (--peer-skip-client-san-verification); that it is of the right authority is checked"

// skipPeerAddresses makes etcd not compare the certificate of a peer with the address that it connects from: that is an
// address of this machine, which the certificate cannot name.
func (s *etcdSettings) skipPeerAddresses() {
	const skip = "peer-skip-client-san-verification"
	auto, _ := s.get("peer-auto-tls")
	if !s.has("peer-cert-file") && auto == "" || s.has(skip) || s.has("experimental-"+skip) {
		return
	}
	s.add(skip, "true")
	s.notes = append(s.notes, skippedPeerAddresses)
}

// path returns the path on this machine of a file of the container. A relative path stays, since the working directory
// is right, unless it leads out of that: nothing is above the container's root.
func (s *etcdSettings) path(name string) string {
	switch {
	case strings.HasPrefix(name, "/"):
		return s.container.hostPath(name)
	case climbs(name):
		return s.container.hostPath(path.Join("/", s.container.WorkingDir, name))
	}
	return name
}

// climbs reports whether a relative path leads to a directory above.
func climbs(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// etcdLists are the flags whose values contain paths among other things.
var etcdLists = map[string]func(*etcdSettings, string) string{
	"log-outputs": (*etcdSettings).logOutputs, "auth-token": (*etcdSettings).authToken,
}

// logOutputs translates the paths in a list of outputs, which also contains names such as stderr. Paths may be written
// as URLs.
func (s *etcdSettings) logOutputs(list string) string {
	all := strings.Split(list, ",")
	for i, output := range all {
		name := strings.TrimPrefix(output, "file://")
		if moved := s.path(name); moved != name {
			all[i] = moved
		}
	}
	return strings.Join(all, ",")
}

// authToken is a kind with options, of which some are files: jwt,pub-key=/etc/jwt.pub,sign-method=RS256.
func (s *etcdSettings) authToken(list string) string {
	all := strings.Split(list, ",")
	for i, option := range all {
		if key, file, has := strings.Cut(option, "="); has && (key == "pub-key" || key == "priv-key") {
			all[i] = key + "=" + s.path(file)
		}
	}
	return strings.Join(all, ",")
}

// listen translates addresses of the pod to addresses of this machine.
func (s *etcdSettings) listen(list string) (string, error) {
	var all []string
	for text := range strings.SplitSeq(list, ",") {
		at, err := s.listenURL(strings.TrimSpace(text))
		if err != nil {
			return "", err
		}
		if !slices.Contains(all, at) { // 0.0.0.0 and 127.0.0.1 are the same here
			all = append(all, at)
		}
	}
	return strings.Join(all, ","), nil
}

func (s *etcdSettings) listenURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err == nil && strings.HasPrefix(u.Scheme, "unix") {
		return "", fmt.Errorf("listen %s: a socket would be a file of this machine, not of the container", text)
	}
	if err != nil || u.Host == "" {
		return text, nil //nolint:nilerr // etcd says what is wrong with it
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return text, nil //nolint:nilerr // as above
	}
	if !s.container.isOwn(u.Hostname()) {
		if net.ParseIP(u.Hostname()) == nil {
			return text, nil // as above: it listens on no name
		}
		// This machine may have the address, and others would reach it there, but the pod does not have it.
		return "", fmt.Errorf("listen tcp %s: bind: cannot assign requested address", u.Host)
	}
	at, err := here(s.container, port)
	if err != nil {
		return "", err
	}
	u.Host = at
	s.listens = append(s.listens, text+" is "+u.String())
	return u.String(), nil
}

// isOwn reports whether the container can listen on an address.
func (c *Container) isOwn(host string) bool {
	if host == "localhost" || host == c.IP {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// arguments returns the arguments of the process.
func (s *etcdSettings) arguments() []string {
	var all []string
	for _, f := range s.flags {
		all = append(all, f.text())
	}
	return all
}
