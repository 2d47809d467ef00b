package sandbox

import (
	"context"
	"fmt"
	"net"

	"k8s.io/client-go/rest"

	podnet "github.com/operator-lab/operator-lab/sandbox/network"
)

// Access gives access to a sandbox that another process runs.
type Access struct {
	record *Record
	plane  *plane
	admin  *rest.Config
}

// Open returns access to the sandbox, or [ErrNotRunning].
func (r *Record) Open() (*Access, error) {
	if !r.Running || !r.Ready {
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, r.Name)
	}
	l := layout{r.Dir}
	keys, err := openPKI(l.pki())
	if err != nil {
		return nil, err
	}
	p := &plane{layout: l, pki: keys, ports: r.Ports}
	admin, err := p.config("admin")
	return &Access{record: r, plane: p, admin: admin}, err
}

// Name returns the name of the sandbox.
func (a *Access) Name() string { return a.record.Name }

// Kubeconfig returns the path of a kubeconfig with an administrator's credentials.
func (a *Access) Kubeconfig() string { return a.record.Kubeconfig() }

// Config returns an administrator's client configuration, as [Sandbox.Config] does.
func (a *Access) Config() *rest.Config { return rest.CopyConfig(a.admin) }

// User issues credentials, as [Sandbox.User] does.
func (a *Access) User(name string, groups ...string) (*rest.Config, error) {
	return a.plane.user(name, groups)
}

// DialContext connects to pods and Services as [Sandbox.DialContext] does, through the sandbox's proxy.
func (a *Access) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return podnet.DialThrough(ctx, a.record.Proxy, network, address)
}
