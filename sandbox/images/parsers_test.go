package images_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// nowhere is a container that nobody needs to see.
func nowhere(t *testing.T) *images.Container {
	t.Helper()
	return &images.Container{
		IP: "10.244.1.5", Dir: t.TempDir(), Network: &loopback{ports: map[int]string{}},
		Mounts: []images.Mount{{ContainerPath: "/etc/tls", HostPath: "/somewhere"}},
	}
}

func FuzzEtcdArguments(f *testing.F) {
	for _, text := range []string{
		"--name=a\n--data-dir\n/var/etcd", "-listen-client-urls\nhttp://0.0.0.0:2379,", "--\n--name", "---\n-\n--=\n--=x", "--listen-peer-urls=http://[::1]:x,unix://a",
		"--version", "--peer-auto-tls\n--cert-file=/etc/tls/../x", "--config-file=/x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := nowhere(t)
		once, err := images.EtcdArguments(c, strings.Split(text, "\n"))
		if err != nil {
			return // of a port that there is not
		}
		// What is this machine's is no more the container's, except for paths.
		c.Mounts, c.Dir, c.IP = nil, "/", "0.0.0.0"
		c.Network = same{}
		twice, err := images.EtcdArguments(c, once)
		if err != nil || !slices.Equal(once, twice) {
			t.Errorf("%q becomes %q, which becomes %q, %v", text, once, twice, err)
		}
	})
}

// same is a network whose host addresses are all on 127.0.0.1.
type same struct{ images.Network }

func (same) HostAddress(port int) (string, int, error) {
	if port > 30000 {
		return "127.0.0.1", port, nil
	}
	return "127.0.0.1", 30000 + port, nil
}

func FuzzEtcdctlArguments(f *testing.F) {
	for _, text := range []string{
		"get\n/etc/tls/x", "--endpoints\nlocalhost:2379\nput\na\nb", "--endpoints=a:1,127.0.0.1:2\nget", "-w\n", "--\n--", "--cacert=\n--key", "snapshot\nsave\n/etc/tls/x",
		"--endpoints=https://localhost:2379", "-w", "--endpoints=%zz://", "--endpoints=//[::1]:99999",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		got, err := images.EtcdctlArguments(nowhere(t), args)
		if err != nil {
			return
		}
		if len(got) != len(args) {
			t.Fatalf("%q becomes %q", args, got)
		}
		snapshot := slices.Contains(args, "snapshot")
		for i := range got {
			named := strings.HasPrefix(args[i], "--") || i > 0 && strings.HasPrefix(args[i-1], "--")
			if got[i] != args[i] && !named && !snapshot {
				t.Errorf("%q becomes %q", args[i], got[i])
			}
		}
	})
}

func FuzzChunks(f *testing.F) {
	f.Add("5;chunk-signature=abc\r\nhello\r\n0;chunk-signature=d\r\nx-amz-checksum:1\r\n\r\n", "hello")
	f.Add("0\r\n\r\n", "")
	f.Add("-1\r\n", "x")
	f.Add("ffffffffffffffff\r\n", "\r\n0\r\n")
	f.Fuzz(func(t *testing.T, text, body string) {
		if got, err := images.ReadChunks(text); err == nil && len(got) > len(text) {
			t.Errorf("%q becomes %q", text, got)
		}
		half := len(body) / 2
		var sent strings.Builder
		for _, chunk := range []string{body[:half], body[half:]} {
			if chunk != "" {
				fmt.Fprintf(&sent, "%x;chunk-signature=0\r\n%s\r\n", len(chunk), chunk)
			}
		}
		whole := sent.String()
		if got, err := images.ReadChunks(whole + "0;chunk-signature=0\r\n\r\n"); err != nil || got != body {
			t.Errorf("%q becomes %q, %v", whole, got, err)
		}
		if _, err := images.ReadChunks(whole); err == nil {
			t.Errorf("%q is taken for complete", whole)
		}
	})
}

func FuzzSignature(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=a/20260101/r/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=00", "/a b/c?x=%20&y", "p")
	f.Add("AWS4-HMAC-SHA256 Credential=a", "/", "")
	f.Add("", "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=x&X-Amz-Signature=1", "")
	f.Fuzz(func(t *testing.T, header, target, password string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://s3.example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := request.URL.Parse(target); err == nil {
			request.URL = u
		}
		request.Header.Set("Authorization", header)
		if _, right := images.IsSigned(request, password); right {
			t.Errorf("%q is taken for a signature by %q", header, password)
		}
	})
}

// FuzzAlter compares with what a statement says by its quotes: what is outside of them are the words that are known, and what
// is in them has no quote of its own.
func FuzzAlter(f *testing.F) {
	for _, text := range []string{
		"ALTER USER IF EXISTS 'ann'@'%' IDENTIFIED BY 'new';", "alter user 'ann' identified by ''", " ALTER\tUSER 'a b'\nIDENTIFIED BY 'x' ; ",
		"ALTER USER '' IDENTIFIED BY 'x'", "ALTER USER 'a'@'host' IDENTIFIED BY 'x'", `ALTER USER 'a' IDENTIFIED BY 'x\'; DROP TABLE t;'`,
		"ALTER USER 'a' IDENTIFIED BY 'x'; ALTER USER 'root' IDENTIFIED BY 'y'", "ALTER USER 'a' IDENTIFIED BY 'it''s'", "ALTER USER IF 'a' IDENTIFIED BY 'x'",
	} {
		f.Add(text)
	}
	words := func(text string) string {
		return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\f\r", r) }), " ")
	}
	f.Fuzz(func(t *testing.T, text string) {
		user, password, known := images.ReadAlter(text)
		parts := strings.Split(text, "'")
		if len(parts) == 7 && parts[2] == "@" && parts[3] == "%" {
			parts = slices.Delete(parts, 2, 4)
		}
		if !known {
			return // whatever it is, nothing is done
		}
		if len(parts) != 5 || parts[1] != user || parts[3] != password || user == "" || strings.Contains(user+password, `\`) {
			t.Fatalf("%q is taken for another password of %q: %q", text, user, password)
		}
		before, between, after := words(parts[0]), words(parts[2]), words(parts[4])
		if !strings.EqualFold(before, "ALTER USER") && !strings.EqualFold(before, "ALTER USER IF EXISTS") ||
			!strings.EqualFold(between, "IDENTIFIED BY") || after != "" && after != ";" {
			t.Errorf("%q is taken for a change of a password", text)
		}
		if u, p, again := images.ReadAlter("ALTER USER '" + user + "'@'%' IDENTIFIED BY '" + password + "'"); !again || u != user || p != password {
			t.Errorf("%q and %q become %q and %q", user, password, u, p)
		}
	})
}
