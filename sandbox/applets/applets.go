// Package applets holds the programs the one binary can be: upstream's own etcd, etcdctl, etcdutl, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet and kubectl, KWOK, and the programs of the Operator Lifecycle Manager, linked in.
//
// Which one a process is, is decided by the base name it was called by (see [Main]), as busybox does it. A directory
// of links to the binary is therefore all that envtest's BinaryAssetsDirectory needs.
//
// This is the only package that links k8s.io/kubernetes, and only cmd/operator-lab imports it: everything else drives
// the binary.
package applets

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/operator-lab/operator-lab/sandbox/early/collector"
	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// applets maps a program's name to its main function, which returns the exit code. Each reads os.Args, as upstream's
// own main functions do.
var applets = map[string]func() int{
	"etcd":                    etcd,
	"kube-apiserver":          server(apiServer),
	"kube-controller-manager": server(controllerManager),
	"kube-scheduler":          server(scheduler),
	"etcdctl":                 Etcdctl,
	"etcdutl":                 Etcdutl,
	"kubectl":                 Kubectl,
	"kubelet":                 server(nodeProgram),
	"kwok":                    server(kwok),
	"catalog-operator":        server(olmProgram("catalog-operator", catalogOperator)),
	"olm-operator":            server(olmProgram("olm-operator", olmOperator)),
	"package-server":          server(packageServer),
	"opm":                     server(opm),
}

// Main runs the program this process was called as, and reports whether that was one of the applets. When it returns
// true, code is the process's exit code.
func Main(argv0 string) (code int, ok bool) {
	// Linking etcdctl lets all commands of this process be called by their first letters, which none of the others expects.
	cobra.EnablePrefixMatching = false
	run, ok := applets[filepath.Base(argv0)]
	if !ok {
		return 0, false
	}
	return run(), true
}

// server wraps a program that must end with the process that started it.
func server(run func() int) func() int {
	return func() int {
		dieWithParent()
		return run()
	}
}

// dieWithParent ends this process with its parent. A program started by another project's envtest suite has no pipe to
// watch; there, a change of the parent's pid shows that the parent has ended. If the parent's pid is 1 from the start, the process may
// be meant to stay.
func dieWithParent() {
	if guard.WatchParent() {
		collector.RunSeldom(10 * time.Second)
		return
	}
	parent := os.Getppid()
	if parent == 1 {
		return
	}
	go func() {
		for range time.Tick(500 * time.Millisecond) {
			if os.Getppid() != parent {
				os.Exit(guard.ExitCode)
			}
		}
	}()
}

func etcd() int {
	dieWithParent()
	prepareEtcd()
	etcdmain.Main(os.Args)
	return 0
}

// Kubectl is upstream's kubectl on os.Args.
func Kubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints as kubectl does and exits
		return 1
	}
	return 0
}
