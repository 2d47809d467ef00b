package images

import (
	"errors"
	"net"
	"net/url"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

// control starts etcdctl, whose endpoints may be the member in the container.
func (i etcdImage) control(c *Container, cmd *exec.Cmd, args []string, env *variables) (Running, error) {
	call := readEtcdctl(c, args, env)
	if call.runsCommand() {
		return nil, errors.New("a command that it runs by itself would be one of this machine, not of the container")
	}
	if err := call.localize(); err != nil {
		call.close()
		return nil, err
	}
	if !call.reads() {
		own := *c
		own.Stdin = nil
		c = &own
	}
	cmd.Args = append([]string{etcdctlCommand}, call.args...)
	cmd.Env = env.list()
	r, err := spawn(i.guard, c, cmd)
	if err != nil {
		call.close()
		return nil, err
	}
	if len(call.relays) > 0 {
		go func() {
			<-r.Done()
			call.close()
		}()
	}
	return r, nil
}

// etcdctlCall is a command line of etcdctl.
type etcdctlCall struct {
	container *Container
	args      []string
	env       *variables
	// words are the arguments that are not flags; indices are their places in args.
	words   []string
	indices []int
	// values are the places of the flags' values in args.
	values map[string]flagPlace
	relays []*relay
}

// close closes everything that was opened for the call.
func (e *etcdctlCall) close() {
	for _, r := range e.relays {
		r.close()
	}
}

// flagPlace is the place of a flag's value: the index of the argument, and the offset in it.
type flagPlace struct{ index, from int }

const etcdEndpoint = "127.0.0.1:2379"

// etcdctlSwitches are the flags of etcdctl without a value, except for those of commands that take no further
// arguments.
var etcdctlSwitches = []string{
	"debug", "hex", "insecure-transport", "insecure-discovery", "insecure-skip-tls-verify", "help", "h", "cluster",
	"prefix", "from-key", "keys-only", "print-value-only", "count-only", "prev-kv", "rev", "learner", "skip-hash-check",
	"ignore-value", "ignore-lease", "interactive", "i", "physical", "keys", "once", "no-password",
}

// readEtcdctl reads a command line.
func readEtcdctl(c *Container, args []string, env *variables) *etcdctlCall {
	call := &etcdctlCall{container: c, args: slices.Clone(args), env: env, values: map[string]flagPlace{}}
	for i := 0; i < len(args); i++ {
		name, dashed := strings.CutPrefix(args[i], "--")
		short := !dashed && len(args[i]) > 1 && args[i][0] == '-'
		switch {
		case args[i] == "--":
			for j := i + 1; j < len(args); j++ {
				call.words, call.indices = append(call.words, args[j]), append(call.indices, j)
			}
			return call
		case short: // -w table, -wtable
			if args[i] == "-w" {
				i++
			}
		case dashed:
			key, _, assigned := strings.Cut(name, "=")
			switch {
			case assigned:
				call.values[key] = flagPlace{i, len("--") + len(key) + len("=")}
			case !slices.Contains(etcdctlSwitches, key) && i+1 < len(args):
				i++
				call.values[key] = flagPlace{i, 0}
			}
		default:
			call.words, call.indices = append(call.words, args[i]), append(call.indices, i)
		}
	}
	return call
}

// get returns the value of a flag, or of its variable.
func (e *etcdctlCall) get(name string) (string, bool) {
	if at, has := e.values[name]; has {
		return e.args[at.index][at.from:], true
	}
	value := e.env.get(etcdctlVariable(name))
	return value, value != ""
}

func etcdctlVariable(name string) string {
	return "ETCDCTL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// set changes the value of a flag or of its variable.
func (e *etcdctlCall) set(name, value string) {
	if at, has := e.values[name]; has {
		e.args[at.index] = e.args[at.index][:at.from] + value
		return
	}
	e.env.set(etcdctlVariable(name), value)
}

// is reports whether the command begins with the words.
func (e *etcdctlCall) is(words ...string) bool {
	return len(e.words) >= len(words) && slices.Equal(e.words[:len(words)], words)
}

// reads reports whether the command may read its standard input.
func (e *etcdctlCall) reads() bool {
	return len(e.words) > 0 && slices.Contains([]string{"put", "txn", "user", "auth"}, e.words[0])
}

// runsCommand reports whether etcdctl is to run a command: while it holds a lock, or for each event.
func (e *etcdctlCall) runsCommand() bool {
	return e.is("lock") && len(e.words) > 2 || e.is("watch") && (slices.Contains(e.args, "--") || slices.Contains(e.args, "-i") ||
		slices.Contains(e.args, "--interactive"))
}

// localize replaces files and the pod's own addresses by those of this machine.
func (e *etcdctlCall) localize() error {
	for _, name := range []string{"cert", "key", "cacert"} {
		if file, has := e.get(name); has && (strings.HasPrefix(file, "/") || climbs(file)) {
			e.set(name, e.container.hostPath(file))
		}
	}
	if e.is("snapshot") && len(e.words) > 2 { // save, status and restore FILE
		if at := e.indices[2]; strings.HasPrefix(e.args[at], "/") || climbs(e.args[at]) {
			e.args[at] = e.container.hostFile(e.args[at])
		}
		for _, name := range []string{"data-dir", "wal-dir"} {
			if dir, has := e.get(name); has && (strings.HasPrefix(dir, "/") || climbs(dir)) {
				e.set(name, e.container.hostFile(dir))
			}
		}
	}
	text, has := e.get("endpoints")
	if !has {
		text = etcdEndpoint
	}
	endpoints := strings.Split(text, ",")
	// A client whose first endpoint needs no proxy asks none for the others either.
	outside := slices.ContainsFunc(endpoints, func(endpoint string) bool {
		_, _, own := e.container.ownEndpoint(endpoint)
		return !own
	})
	for i, endpoint := range endpoints {
		u, port, own := e.container.ownEndpoint(endpoint)
		switch {
		case !own:
			continue
		case outside:
			u.Host = net.JoinHostPort(e.container.IP, u.Port())
		case e.secure(u):
			r, err := newRelay(e.container, port)
			if err != nil {
				return err
			}
			e.relays = append(e.relays, r)
			u.Host = net.JoinHostPort(u.Hostname(), r.port())
		default:
			at, err := here(e.container, port)
			if err != nil {
				return err
			}
			u.Host = at
		}
		endpoints[i] = strings.TrimPrefix(u.String(), "//")
	}
	e.set("endpoints", strings.Join(endpoints, ","))
	return nil
}

// secure reports whether an endpoint is asked for its certificate.
func (e *etcdctlCall) secure(u *url.URL) bool {
	for _, name := range []string{"cert", "cacert"} {
		if _, has := e.get(name); has && u.Scheme == "" {
			return true
		}
	}
	return u.Scheme == "https"
}

// ownEndpoint reads an endpoint of a client of etcd; false: it is none of the container's own.
func (c *Container) ownEndpoint(endpoint string) (u *url.URL, port int, own bool) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "//" + endpoint
	}
	u, err := url.Parse(endpoint)
	// Other pods know the pod's own address, too.
	if err != nil || !c.isOwn(u.Hostname()) || u.Hostname() == c.IP {
		return nil, 0, false
	}
	port, err = strconv.Atoi(u.Port())
	return u, port, err == nil
}

// hostArguments replaces paths of the container by those of this machine. It is only for commands whose arguments are
// not keys, which look like paths. A relative path that leads upwards starts at the root, because nothing is above it
// in the container.
func (c *Container) hostArguments(args []string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		key, name := "", a
		if strings.HasPrefix(a, "-") {
			before, value, _ := strings.Cut(a, "=")
			key, name = before+"=", value
		}
		if climbs(name) {
			args[i] = key + path.Join("/", name)
		}
	}
	return mapArguments(args, c.hostFile)
}
