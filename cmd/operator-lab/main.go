// Operator-lab is a teaching and simulation sandbox for Kubernetes operators, in one binary.
//
// Called by the name of a Kubernetes program (etcd, kube-apiserver, kubectl…) it is that program; see the package
// applets. Otherwise it is the lab; see the package cli.
package main

import (
	"os"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/cli"
	"github.com/operator-lab/operator-lab/sandbox/applets"
	"github.com/operator-lab/operator-lab/sandbox/early/collector"
	_ "github.com/operator-lab/operator-lab/sandbox/early/kubeversion"
	_ "github.com/operator-lab/operator-lab/sandbox/early/translations" // before the packages of kubectl
)

func main() {
	collector.Start()
	if code, ok := applets.Main(os.Args[0]); ok {
		os.Exit(code)
	}
	os.Exit(cli.Main(os.Args[1:], cli.Programs{
		Kubectl: applets.Kubectl, Etcdctl: applets.Etcdctl, Etcdutl: applets.Etcdutl,
	}))
}
