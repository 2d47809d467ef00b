// Package zoo makes operators of the lab for tests: small controllers with or without a bug, in Kubernetes' own kinds.
package zoo

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators"
)

// binding allows an operator, which is called NAME, everything.
const binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: NAME, namespace: NAME}]
`

// Operator returns an operator that setup adds to a manager. It has one variant, no CRDs, no demo and all permissions.
func Operator(name string, setup func(ctrl.Manager, controller.Options) error) operators.Operator {
	return operators.Operator{
		Name: name, Namespace: name, ServiceAccount: name,
		AddToScheme: func(*runtime.Scheme) error { return nil },
		Manifests: fstest.MapFS{
			"rbac/role.yaml": {Data: []byte(strings.ReplaceAll(binding, "NAME", name))}, "rbac/only": {Mode: fs.ModeDir},
		},
		New: func() operators.Instance { return instance{setup} },
	}
}

// instance is the operator with its only variant.
type instance struct {
	setup func(ctrl.Manager, controller.Options) error
}

// Flags adds a flag for the variant.
func (instance) Flags(f *pflag.FlagSet) { f.String("variant", "only", "there is one") }

// Variant returns the only one.
func (instance) Variant() string { return "only" }

// CRDs returns none.
func (instance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return nil, nil }

// Demo returns one that plays nothing.
func (instance) Demo() operators.Demo { return demo{} }

// SetupWithManager adds the controllers.
func (i instance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return i.setup(mgr, o)
}

// demo plays nothing.
type demo struct{}

// Flags adds none.
func (demo) Flags(*pflag.FlagSet) {}

// Values returns none.
func (demo) Values() (map[string]any, error) { return nil, nil }

// Caption returns none.
func (demo) Caption(string, json.RawMessage) string { return "" }

// Summary is not called.
func (demo) Summary(context.Context, client.Reader, func(english, japanese string) string) ([][2]string, error) {
	return nil, errors.New("there is no demo")
}
