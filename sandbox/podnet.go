package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/operator-lab/operator-lab/sandbox/network"
)

// openNetwork opens the cluster's part of the pod network. It must exist before the API server starts, which reaches
// nodes and pods through it. It knows no Services before [Sandbox.watchServices].
func (s *Sandbox) openNetwork() error {
	dir, err := socketsOf(s.layout, s.options.Nodes)
	if err != nil {
		return err
	}
	loopback, release, err := network.ClaimLoopback(s.record.Loopback, loopbacksOfOthers(s.options.StateDir, s.options.Name))
	if err != nil {
		return err
	}
	s.releaseLoopback = release
	s.plan = network.Plan{Dir: dir, Loopback: loopback}
	if s.hub, err = s.openHub(); err != nil {
		return err
	}
	s.plane.hub = s.plan.HubSocket()
	return s.save(func(r *Record) { r.Loopback, r.Proxy = loopback, s.hub.ProxyURL() })
}

// openHub opens the hub with the proxy's port and password of the last run, so that exported variables stay valid.
func (s *Sandbox) openHub() (*network.Hub, error) {
	o := network.HubOptions{APIServer: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports.API))}
	o.ProxyPort, o.Password = proxyOf(s.record.Proxy)
	hub, err := network.OpenHub(s.plan, o)
	if errors.Is(err, network.ErrPortTaken) {
		o.ProxyPort = 0
		hub, err = network.OpenHub(s.plan, o)
	}
	return hub, err
}

// closeNetwork closes the pod network.
func (s *Sandbox) closeNetwork() error {
	if s.releaseLoopback != nil {
		defer s.releaseLoopback()
	}
	if s.hub == nil {
		return nil
	}
	return errors.Join(s.hub.Close(), removeSockets(s.layout))
}

// watchServices makes the network follow Services and their endpoints until it is closed, and returns when it knows all
// that exist. A second call replaces what the first one has learned: after an API server was away, the informers of the
// first one may wait for a while before they try again.
func (s *Sandbox) watchServices(ctx context.Context) error {
	watching, cancel := context.WithCancel(quiet(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	if err := s.hub.Watch(watching, s.Config()); err != nil {
		return fmt.Errorf("follow Services: %w", err)
	}
	return nil
}

// proxyOf reads a proxy's port and password from its URL.
func proxyOf(proxy string) (port int, password string) {
	u, err := url.Parse(proxy)
	if err != nil || u.User == nil {
		return 0, ""
	}
	port, _ = strconv.Atoi(u.Port())
	password, _ = u.User.Password()
	return port, password
}

// socketPath is the longest path of a unix socket that all systems accept (macOS has the shortest).
const socketPath = 103

// The longest name in the directory of sockets, and the longest that a kubelet makes below its shortcut.
const (
	longSocket  = "/orders-32.sock"
	longKubelet = "/root-32/pod-resources/1234567890"
)

// socketsOf makes the directory of a sandbox's sockets: its own, or if that path is too long for a socket, one among
// temporary files, always the same.
func socketsOf(l layout, nodes int) (string, error) {
	own := filepath.Join(l.dir, "sockets")
	longest := longSocket
	if nodes > 0 {
		longest = longKubelet
	}
	for _, dir := range append([]string{own}, shortSockets(l)...) {
		if len(dir)+len(longest) > socketPath {
			continue
		}
		err := ownDir(dir)
		if err == nil || dir == own {
			return dir, err
		}
	}
	return "", &Problem{
		fmt.Errorf("the path %s is too long for sockets, and none can be made among temporary files", own),
		"set OPERATOR_LAB_STATE_DIR to a directory with a shorter path",
	}
}

// shortSockets returns directories for a sandbox's sockets among temporary files.
func shortSockets(l layout) []string {
	sum := sha256.Sum256([]byte(l.dir))
	name := fmt.Sprintf("operator-lab-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6]))
	return []string{filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name)}
}

// removeSockets removes the sockets among temporary files, also after a lab was killed.
func removeSockets(l layout) error {
	var errs []error
	for _, dir := range shortSockets(l) {
		if info, err := os.Lstat(dir); err == nil && isOurs(info) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// ownDir makes a directory that nobody else can enter. A directory or link of that name may exist and belong to
// somebody else, which is an error.
func ownDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !isOurs(info) {
		return fmt.Errorf("%s is somebody else's: %w", dir, fs.ErrPermission)
	}
	return os.Chmod(dir, 0o700)
}

func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == os.Getuid()
}

// shortcut makes a short path to a node's directory, a link in the directory of sockets.
func shortcut(sockets string, l layout, index int) (string, error) {
	dir := filepath.Join(l.nodes(), NodeName(index))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	link := filepath.Join(sockets, "root-"+strconv.Itoa(index))
	if target, err := os.Readlink(link); err == nil && target == dir {
		return link, nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return link, os.Symlink(dir, link)
}

// loopbacksOfOthers returns the loopback ranges that other sandboxes of this state directory use or will use again.
func loopbacksOfOthers(state, name string) map[int]bool {
	records, _ := List(state) // what cannot be read claims nothing
	others := map[int]bool{}
	for _, r := range records {
		if r.Name != name {
			others[r.Loopback] = true
		}
	}
	return others
}

// Proxy returns the URL of an HTTP proxy, with credentials, that knows the cluster's names: with it in $http_proxy
// 'curl http://web.default.svc.cluster.local' works as it does in a pod.
func (s *Sandbox) Proxy() string { return s.hub.ProxyURL() }

// DialContext connects to pods, Services and nodes by their names and addresses in the cluster, and to any other host.
// The network is tcp.
func (s *Sandbox) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.hub.DialContext(ctx, network, address)
}
