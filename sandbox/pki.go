package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-lab/operator-lab/sandbox/certificate"
)

// pki is a directory of certificates and ECDSA keys (files 0600). Three authorities are kept apart: one for the API,
// one for etcd (a client of the API must not be a client of etcd), one for the front proxy of aggregated APIs.
type pki struct {
	dir string
	// The authorities by file name without its ending.
	authorities map[string]*certificate.Authority
}

const (
	clusterCA    = "ca"
	etcdCA       = "etcd-ca"
	frontProxyCA = "front-proxy-ca"
)

// Addresses in the cluster. serviceIP is the first of serviceRange, the API server's own Service; its endpoint is
// advertisedIP.
const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1"
	advertisedIP = "10.244.0.1"
)

// subject describes a certificate.
type subject struct {
	file   string // name without ending
	ca     string
	name   string
	groups []string
	hosts  []string // serving certificate for these; client certificate when empty
}

// The clients and servers of the control plane. Each has credentials of its own.
var subjects = []subject{
	{file: "apiserver", ca: clusterCA, name: "kube-apiserver", hosts: []string{
		"localhost", "127.0.0.1", serviceIP, advertisedIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}},
	{file: "etcd", ca: etcdCA, name: "etcd", hosts: []string{"localhost", "127.0.0.1"}},
	{file: "apiserver-etcd-client", ca: etcdCA, name: "kube-apiserver"},
	{file: "apiserver-kubelet-client", ca: clusterCA, name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
	{file: "front-proxy-client", ca: frontProxyCA, name: "front-proxy-client"},
	{file: "controller-manager", ca: clusterCA, name: "system:kube-controller-manager", groups: []string{"system:masters"}},
	{file: "scheduler", ca: clusterCA, name: "system:kube-scheduler"},
	{file: "admin", ca: clusterCA, name: "operator-lab-admin", groups: []string{"system:masters"}},
}

// openPKI loads the directory, or makes it when there is none.
func openPKI(dir string) (*pki, error) {
	p := &pki{dir: dir, authorities: map[string]*certificate.Authority{}}
	_, err := os.Stat(p.path("complete"))
	if errors.Is(err, os.ErrNotExist) {
		return p, p.create()
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{clusterCA, etcdCA, frontProxyCA} {
		if err := p.load(name); err != nil {
			return nil, fmt.Errorf("read certificate authority %s: %w", p.path(name+".crt"), err)
		}
	}
	return p, nil
}

func (p *pki) path(file string) string { return filepath.Join(p.dir, file) }

func (p *pki) create() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{clusterCA, etcdCA, frontProxyCA} {
		if err := p.newAuthority(name); err != nil {
			return err
		}
	}
	for _, s := range subjects {
		if err := p.issueFile(s); err != nil {
			return err
		}
	}
	if err := p.newServiceAccountKey(); err != nil {
		return err
	}
	// Written last, so that a start that was interrupted begins again.
	return os.WriteFile(p.path("complete"), nil, 0o600)
}

func (p *pki) newAuthority(name string) error {
	authority, err := certificate.NewAuthority("operator-lab-" + name)
	if err != nil {
		return err
	}
	keyPEM, err := authority.KeyPEM()
	if err != nil {
		return err
	}
	p.authorities[name] = authority
	return p.write(name, authority.PEM(), keyPEM)
}

func (p *pki) load(name string) error {
	certPEM, err := os.ReadFile(p.path(name + ".crt"))
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(p.path(name + ".key"))
	if err != nil {
		return err
	}
	p.authorities[name], err = certificate.ParseAuthority(certPEM, keyPEM)
	return err
}

// issue makes a certificate and its key, both in PEM.
func (p *pki) issue(s subject) (certPEM, keyPEM []byte, err error) {
	return p.authorities[s.ca].Issue(certificate.Subject{Name: s.name, Groups: s.groups, Hosts: s.hosts})
}

func (p *pki) issueFile(s subject) error {
	certPEM, keyPEM, err := p.issue(s)
	if err != nil {
		return err
	}
	return p.write(s.file, certPEM, keyPEM)
}

// ensure issues the certificates that do not exist yet.
func (p *pki) ensure(subjects ...subject) error {
	for _, s := range subjects {
		// The certificate is written first: a key tells that both are there.
		if _, err := os.Stat(p.path(s.file + ".key")); err == nil {
			continue
		}
		if err := p.issueFile(s); err != nil {
			return err
		}
	}
	return nil
}

// newServiceAccountKey makes the key that signs service account tokens, under the names envtest looks for.
func (p *pki) newServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	keyPEM, err := certificate.KeyPEM(key)
	if err != nil {
		return err
	}
	return p.write("sa-signer", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), keyPEM)
}

func (p *pki) write(name string, certPEM, keyPEM []byte) error {
	if err := os.WriteFile(p.path(name+".crt"), certPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.path(name+".key"), keyPEM, 0o600)
}

// caPEM returns an authority's certificate.
func (p *pki) caPEM(name string) []byte { return p.authorities[name].PEM() }
