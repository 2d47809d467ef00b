package sandbox_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
)

// readyIn reports an error until a sandbox that another process holds is ready.
func readyIn(name string) func(context.Context) error {
	return func(context.Context) error {
		r, err := sandbox.Lookup(stateDir, name)
		if err == nil && (!r.Running || !r.Ready) {
			err = errors.New("it is not ready")
		}
		return err
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	lab := start(t, sandbox.Options{Name: "modes"})
	err := filepath.WalkDir(lab.Dir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEtcdRefusesStrangers(t *testing.T) {
	lab := shared.Get(t)
	record, err := sandbox.Lookup(stateDir, lab.Name())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // that is what a stranger does
	for _, port := range []int{record.Ports.Etcd, record.Ports.Peer} {
		for _, scheme := range []string{"http", "https"} {
			resp, err := client.Get(fmt.Sprintf("%s://127.0.0.1:%d/version", scheme, port))
			if err == nil {
				_ = resp.Body.Close()
				t.Errorf("%s to etcd's port %d without a certificate: %s", scheme, port, resp.Status)
			}
		}
	}
	// A client of the API is no client of etcd.
	config := lab.Config()
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	client.CloseIdleConnections()
	resp, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/version", record.Ports.Etcd))
	if err == nil {
		_ = resp.Body.Close()
		t.Errorf("the administrator's certificate opens etcd: %s", resp.Status)
	}
}

func TestAnonymousMayNotRead(t *testing.T) {
	lab := shared.Get(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // that is what a stranger does
	resp, err := client.Get(lab.Config().Host + "/api/v1/secrets")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("anonymous reads secrets: %s", resp.Status)
	}
}

// TestListensOnLoopbackOnly reads the kernel's list of listening sockets and which process has them.
func TestListensOnLoopbackOnly(t *testing.T) {
	lab := shared.Get(t)
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("this system has no /proc/net/tcp")
	}
	for program, pid := range lab.PIDs() {
		for _, address := range listening(t, pid) {
			if !address.IsLoopback() {
				t.Errorf("%s listens on %v", program, address)
			}
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(line), "-----BEGIN") || strings.Contains(string(line), "token=") {
			t.Errorf("a secret is in the command line of %s", program)
		}
	}
}

// listening are the addresses a process listens on.
func listening(t *testing.T, pid int) []net.IP {
	t.Helper()
	sockets := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		target, _ := os.Readlink(fd)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var addresses []net.IP
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(table)
		for line := range strings.SplitSeq(string(b), "\n") {
			fields := strings.Fields(line)
			const listen = "0A"
			if len(fields) > 9 && fields[3] == listen && sockets[fields[9]] {
				addresses = append(addresses, parseAddress(t, fields[1]))
			}
		}
	}
	return addresses
}

// parseAddress reads the kernel's form: hexadecimal, each four bytes in the machine's order.
func parseAddress(t *testing.T, s string) net.IP {
	t.Helper()
	digits, _, _ := strings.Cut(s, ":")
	var ip net.IP
	for ; len(digits) >= 8; digits = digits[8:] {
		word, err := strconv.ParseUint(digits[:8], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		ip = append(ip, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	return ip
}
