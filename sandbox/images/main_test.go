package images_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// childVariable makes this program one node with one container, and names its folder.
const childVariable = "OPERATOR_LAB_PROGRAM_TEST_CHILD"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "operator", strings.HasPrefix(filepath.Base(os.Args[0]), "etcd"), os.Args[0] == "opm":
		operatorMain()
	case os.Getenv(childVariable) != "":
		if err := nodeMain(os.Getenv(childVariable)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// operatorMain is what the catalogues of the tests take for the binary: it says how it was called. As etcd it ends by the
// signal, and as etcdctl at once.
func operatorMain() {
	term := make(chan os.Signal, 1)
	heeded := syscall.SIGTERM
	if os.Args[0] == "etcd" {
		heeded = syscall.SIGUSR1 // never sent; waiting for nothing at all would be a deadlock
	}
	signal.Notify(term, heeded)
	fmt.Printf("args: %s\n", strings.Join(os.Args, " "))
	dir, _ := os.Getwd()
	fmt.Printf("dir: %s\n", dir)
	for _, v := range os.Environ() {
		fmt.Printf("env: %s\n", v)
	}
	fmt.Println("ready")
	if strings.HasPrefix(os.Args[0], "etcdctl") || strings.HasPrefix(os.Args[0], "etcdutl") {
		_, _ = io.Copy(os.Stdout, os.Stdin)
		os.Exit(4)
	}
	<-term
}

// nodeMain runs the images file of a folder until it is killed.
func nodeMain(dir string) error {
	c, err := images.NewCatalogue("", filepath.Join(dir, "images.yaml"))
	if err != nil {
		return err
	}
	image, err := c.Lookup("app")
	if err != nil {
		return err
	}
	_, err = image.Program.Start(&images.Container{
		Dir: dir, Stdout: io.Discard, Stderr: io.Discard, Network: &loopback{ports: map[int]string{}},
	})
	_, wait := io.Copy(io.Discard, os.Stdin) // for ever
	return errors.Join(err, wait)
}
