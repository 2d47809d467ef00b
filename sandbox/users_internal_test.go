package sandbox

import (
	"bytes"
	"testing"

	"k8s.io/client-go/rest"
)

// TestUsersShareConnections checks that a user who is asked for again has the certificate, and so the connections, of the first time.
func TestUsersShareConnections(t *testing.T) {
	keys, err := openPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{pki: keys}
	user := func(name string, groups ...string) *rest.Config {
		t.Helper()
		config, err := p.user(name, groups)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	first, again := user("singer", "choir"), user("singer", "choir")
	one, err := rest.TransportFor(first)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := rest.TransportFor(again); err != nil || other != one {
		t.Errorf("connections of their own for the same user: %v", err)
	}
	again.UserAgent = "changed"
	if first.UserAgent != "" || user("singer", "choir").UserAgent != "" {
		t.Error("a change of a configuration is in another one")
	}
	for _, other := range []*rest.Config{user("singer"), user("singer", "choir", "band"), user("choir", "singer")} {
		if bytes.Equal(other.CertData, first.CertData) {
			t.Error("another user has the certificate of the first one")
		}
	}
}
