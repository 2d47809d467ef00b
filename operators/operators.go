// Package operators lists the operators that come with the lab.
//
// Each is ordinary controller-runtime code in a package of its own, which knows nothing of the lab and runs on any
// cluster. This package says what the lab, or anybody else, needs to load one: its manifests, its parameters and
// how its controllers join a manager.
package operators

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Operator is one of the bundled operators.
type Operator struct {
	// Name is what commands call it.
	Name string
	// Summary is one line about it.
	Summary string
	// Seed is the article it comes from, in a few words.
	Source string
	// AddToScheme registers its types.
	AddToScheme func(*runtime.Scheme) error
	// Manifests are its YAML files.
	Manifests fs.FS
	// Namespace and ServiceAccount are who it runs as.
	Namespace, ServiceAccount string
	// LeaderElectionID is the name of its lease.
	LeaderElectionID string
	// New returns an instance with default parameters.
	New func() Instance
}

// Username is the name the API server knows the operator's service account by.
func (o Operator) Username() string {
	return "system:serviceaccount:" + o.Namespace + ":" + o.ServiceAccount
}

// Groups are the groups the API server puts that service account into.
func (o Operator) Groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + o.Namespace, "system:authenticated"}
}

// Instance is one operator to be run, with its parameters.
type Instance interface {
	// Flags binds its parameters, so that every command (and later a manifest) sets them by the same names.
	Flags(*pflag.FlagSet)
	// Variant that the parameters choose.
	Variant() string
	// CRDs of that variant.
	CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error)
	// SetupWithManager adds its controllers, each with the given options.
	SetupWithManager(ctrl.Manager, controller.Options) error
	// Demo is what 'run' plays.
	Demo() Demo
}

// Demo is what can be chosen of the scenario that 'run' plays, and what it means to people. The scenario is the one named
// demo of the operator.
type Demo interface {
	// Flags binds what can be changed about it.
	Flags(*pflag.FlagSet)
	// Values are the scenario's, as the flags say.
	Values() (map[string]any, error)
	// Caption says what an object means to people, such as a word that is sung; empty when nothing.
	Caption(kind string, object json.RawMessage) string
	// Summary of the play as pairs of a name and a value, read from the cluster.
	Summary(context.Context, client.Reader) ([][2]string, error)
}

// Traffic is what the demo of an operator may be too, when people meet its work by asking a URL.
type Traffic interface {
	// Traffic is the URL that 'run' asks once a second while it plays, through the sandbox's proxy.
	Traffic() string
}

// Store is what the demo of an operator may be too, when it makes a cluster of etcd that people write to.
type Store interface {
	// Store names the cluster whose members 'run' asks how they are while it plays, and that it writes to.
	Store() (namespace, name string)
}

// Nodes is what the demo of an operator may be too, when it makes pods that are to run.
type Nodes interface {
	// Nodes is how many simulated nodes the sandbox has.
	Nodes() int
}

// Reach is what an instance may be too, when it connects to what runs in the cluster and not to the API server only.
type Reach interface {
	// Reach says how pods and Services are reached by somebody who is in no pod: addresses are as in the cluster, such as
	// name.namespace.svc:80. It is called before SetupWithManager.
	Reach(dial func(ctx context.Context, address string) (net.Conn, error))
}

// Commands is what an instance may be too, when it has more to run than the operator, such as in the pods that it makes.
type Commands interface {
	// Commands are added to that of the operator.
	Commands() []*cobra.Command
}

// All returns the bundled operators, sorted by name.
func All() []Operator { return []Operator{etcdOperator(), maintpageOperator(), zundokoOperator()} }

// Find returns the operator of a name.
func Find(name string) (Operator, bool) {
	for _, o := range All() {
		if o.Name == name {
			return o, true
		}
	}
	return Operator{}, false
}
