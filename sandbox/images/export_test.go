package images

import (
	"bufio"
	"io"
	"net/http"
	"strings"
)

// EtcdArguments are the arguments of etcd that a pod's arguments become.
func EtcdArguments(c *Container, args []string) ([]string, error) {
	s := readEtcd(c, args, &variables{})
	err := s.localize()
	return s.arguments(), err
}

// EtcdctlArguments are the arguments of etcdctl that those in a container become.
func EtcdctlArguments(c *Container, args []string) ([]string, error) {
	call := readEtcdctl(c, args, &variables{})
	defer call.close()
	err := call.localize()
	return call.args, err
}

// ReadChunks joins a body that is sent in chunks.
func ReadChunks(text string) (string, error) {
	body, err := io.ReadAll(&awsChunks{from: bufio.NewReader(strings.NewReader(text))})
	return string(body), err
}

// ReadAlter returns what a statement that changes a password says; known is false if it is none.
func ReadAlter(statement string) (user, password string, known bool) {
	parts := alterUser.FindStringSubmatch(statement)
	if parts == nil {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// IsSigned reports whether a request has a signature, and whether it is correct for a password.
func IsSigned(r *http.Request, password string) (has, right bool) {
	s, has := readSignature(r)
	return has, has && s.value == s.of(r, password)
}

// OwnArgs are the arguments of an operator of the user's that a pod's arguments become, and those that are left out.
func OwnArgs(c *Container, given []string, tapped bool) (args, ignored []string, err error) {
	return ownArgs(c, given, tapped)
}
