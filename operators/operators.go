// Package operators lists the operators that come with the lab.
//
// Each is ordinary controller-runtime code in a package of its own, which knows nothing of the lab and runs on any
// cluster. This package describes what the lab, or anybody else, needs to load one: its manifests, its parameters and
// how its controllers join a manager.
//
// A new operator needs a function here that returns its [Operator], a call of it in [All], and the scenario that 'run'
// plays in scenarios/<name>/demo. TestOperators checks what is required of it.
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

	"github.com/operator-lab/operator-lab/operators/metacontroller"
)

// Operator is one of the bundled operators.
type Operator struct {
	// Name is the operator's name in commands, such as etcd.
	Name string
	// Summary describes the operator in one line.
	Summary string
	// Source names the article that the operator comes from.
	Source string
	// AddToScheme registers its types. Without types of its own it does nothing.
	AddToScheme func(*runtime.Scheme) error
	// Manifests are its YAML files: custom resource definitions in crds/<variant>, its service account, roles and bindings
	// in rbac and rbac/<variant>, its namespace in manager; and in prometheus rules for what it looks after, if it has some.
	Manifests fs.FS
	// Namespace and ServiceAccount say where and as whom it runs in a cluster.
	Namespace, ServiceAccount string
	// LeaderElectionID is the name of its lease.
	LeaderElectionID string
	// New returns an instance with default parameters.
	New func() Instance
}

// Instance is an operator to be run, with its parameters.
type Instance interface {
	// Flags binds its parameters, so that every command and the lab's Operator object set them by the same names. One of
	// them must be variant.
	Flags(*pflag.FlagSet)
	// Variant returns the variant that the parameters choose.
	Variant() string
	// CRDs returns the custom resource definitions of that variant.
	CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error)
	// SetupWithManager adds its controllers, each with the given options.
	SetupWithManager(ctrl.Manager, controller.Options) error
	// Demo returns the options of the scenario that 'run' plays.
	Demo() Demo
}

// Demo holds the options of the scenario that 'run' plays, which is the one named demo of the operator, and describes its
// objects to people.
type Demo interface {
	// Flags binds the options.
	Flags(*pflag.FlagSet)
	// Values returns the values of the scenario, as the flags say.
	Values() (map[string]any, error)
	// Caption describes an object to people, such as a word that is sung; empty if there is nothing to say.
	Caption(kind string, object json.RawMessage) string
	// Summary describes the result in pairs of a name and a value, read from the cluster, in the language that choose takes.
	Summary(_ context.Context, _ client.Reader, choose func(english, japanese string) string) ([][2]string, error)
}

// Traffic is implemented by a Demo of an operator whose work people see at a URL.
type Traffic interface {
	// Traffic returns the URL that 'run' asks once a second, through the proxy of the sandbox.
	Traffic() string
}

// Store is implemented by a Demo that makes a cluster of etcd that people write to.
type Store interface {
	// Store returns the name of the cluster that 'run' writes to, and whose members it asks for their status.
	Store() (namespace, name string)
}

// Nodes is implemented by a Demo that makes pods that are to run.
type Nodes interface {
	// Nodes returns the number of simulated nodes that the sandbox needs.
	Nodes() int
}

// Reach is implemented by an Instance that connects to pods and Services, and not to the API server only.
type Reach interface {
	// Reach sets how to connect to pods and Services from outside of the cluster: addresses are as in the cluster, such as
	// name.namespace.svc:80. It is called before SetupWithManager.
	Reach(dial func(ctx context.Context, address string) (net.Conn, error))
}

// Keeper is implemented by an Instance that keeps files.
type Keeper interface {
	// Keep names a directory of its own, which the next life of the operator finds as it was left. It is called before
	// SetupWithManager, unless there is no such directory.
	Keep(dir string)
}

// Hooks is implemented by an Instance that asks webhooks what should be there.
type Hooks interface {
	// Called sets who is told of each hook that was asked. It is called before SetupWithManager.
	Called(func(context.Context, metacontroller.Call))
}

// Commands is implemented by an Instance that has more to run than the operator, such as in the pods that it makes.
type Commands interface {
	// Commands returns commands that are added to that of the operator.
	Commands() []*cobra.Command
}

// All returns the bundled operators, sorted by name. It is the only list of them.
func All() []Operator {
	return []Operator{etcdOperator(), maintpageOperator(), meteringOperator(), tomcatOperator(), visitorsOperator(), zundokoOperator()}
}

// Names returns the names of the bundled operators, sorted.
func Names() []string {
	var names []string
	for _, o := range All() {
		names = append(names, o.Name)
	}
	return names
}

// Find returns the operator with a name, and whether there is one.
func Find(name string) (Operator, bool) {
	for _, o := range All() {
		if o.Name == name {
			return o, true
		}
	}
	return Operator{}, false
}
