// Package certificate makes certificate authorities, and certificates for clients and servers, with ECDSA keys.
package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is the lifetime of certificates. A sandbox may be started again long after it was made, and its kubeconfig
// must still work then.
const validity = 10 * 365 * 24 * time.Hour

// Authority is a certificate authority.
type Authority struct {
	// Certificate is its own certificate.
	Certificate *x509.Certificate

	key crypto.Signer
}

// Subject describes a certificate to issue.
type Subject struct {
	// Name is the common name: the user that a client is.
	Name string
	// Groups are the organizations: the groups that a client belongs to.
	Groups []string
	// Hosts are the names and IP addresses of a server; without any it is a certificate for clients only.
	Hosts []string
}

// NewAuthority makes an authority with a new key.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(Subject{Name: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{Certificate: cert, key: key}, nil
}

// ParseAuthority returns the authority that [Authority.PEM] and [Authority.KeyPEM] wrote.
func ParseAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("no PEM block")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return &Authority{Certificate: cert, key: signer}, nil
}

// PEM returns the authority's certificate, for those who are to trust it.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.Certificate.Raw) }

// KeyPEM returns the authority's key.
func (a *Authority) KeyPEM() ([]byte, error) { return KeyPEM(a.key) }

// KeyPEM returns a private key as PKCS #8.
func KeyPEM(key crypto.PrivateKey) ([]byte, error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encode("PRIVATE KEY", pkcs8), nil
}

// Issue makes a certificate and its key.
func (a *Authority) Issue(s Subject) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := template(s)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(s.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = KeyPEM(key)
	return encode("CERTIFICATE", der), keyPEM, err
}

// ForServer makes the certificate of a server, and the certificate of the authority that its clients are to trust. The
// authority signs nothing else. They are two certificates because some clients (rustls) refuse an authority as a server.
func ForServer(name string, hosts ...string) (own tls.Certificate, authorityPEM []byte, err error) {
	authority, err := NewAuthority(name + "-ca")
	if err != nil {
		return own, nil, err
	}
	certPEM, keyPEM, err := authority.Issue(Subject{Name: name, Hosts: hosts})
	if err != nil {
		return own, nil, err
	}
	own, err = tls.X509KeyPair(certPEM, keyPEM)
	return own, authority.PEM(), err
}

func template(s Subject) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.Name, Organization: s.Groups},
		NotBefore:    time.Now().Add(-time.Hour), // clocks differ a little, also between a machine and its container
		NotAfter:     time.Now().Add(validity),
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
