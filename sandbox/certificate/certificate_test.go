package certificate_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/certificate"
)

// TestIssue checks that a server's certificate is trusted for its hosts only, also one of an authority that was written
// and read again.
func TestIssue(t *testing.T) {
	ca, err := certificate.NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := certificate.ParseAuthority(ca.PEM(), key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := again.Issue(certificate.Subject{Name: "s", Groups: []string{"g"}, Hosts: []string{"127.0.0.1", "s.example"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Error(err)
	}
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	// Strict clients want these, and no authority as a server.
	if cert.IsCA || len(cert.AuthorityKeyId) == 0 || !bytes.Equal(cert.AuthorityKeyId, ca.Certificate.SubjectKeyId) {
		t.Errorf("authority %t, key ids %x of %x", cert.IsCA, cert.AuthorityKeyId, ca.Certificate.SubjectKeyId)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	for host, trusted := range map[string]bool{"127.0.0.1": true, "s.example": true, "other.example": false} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); (err == nil) != trusted {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestParseAuthorityRefuses(t *testing.T) {
	ca, err := certificate.NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ca.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][2][]byte{
		"nothing": {nil, nil}, "no key": {ca.PEM(), nil}, "two keys": {key, key}, "two certificates": {ca.PEM(), ca.PEM()},
	} {
		if _, err := certificate.ParseAuthority(files[0], files[1]); err == nil {
			t.Error(name, "is taken")
		}
	}
}
