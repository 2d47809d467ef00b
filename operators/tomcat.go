package operators

import (
	"context"
	"strconv"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/operators/tomcat"
)

// The operator and its Tomcats are in one namespace, as in the article.
const (
	tomcatNamespace = "tomcat-operator"
	tomcatSample    = "example-app"
)

func tomcatOperator() Operator {
	return Operator{
		Name:             "tomcat",
		Summary:          "a Tomcat is a release of a Helm chart: an operator without code of its own",
		Source:           "An operator from a Helm chart (Helm App Operator Kit, 2018)",
		AddToScheme:      func(*runtime.Scheme) error { return nil },
		Manifests:        tomcat.Manifests(),
		Namespace:        tomcatNamespace,
		ServiceAccount:   "tomcat-operator",
		LeaderElectionID: tomcat.LeaderElectionID,
		New: func() Instance {
			t := &tomcatInstance{variant: tomcat.Hardened}
			t.demo.variant = &t.variant
			return t
		},
	}
}

type tomcatInstance struct {
	variant string
	options helm.Options
	demo    tomcatDemo
}

func (t *tomcatInstance) Flags(fs *pflag.FlagSet) {
	fs.Var(oneOf{&t.variant, tomcat.Variants()}, "variant",
		"which of the two operators: hardened, that of helm-operator-plugins, or classic, as that of the kit was in 2018")
	t.options.Bind(fs)
}

func (t *tomcatInstance) Variant() string { return t.variant }

func (t *tomcatInstance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return tomcat.CRDs(t.variant)
}

func (t *tomcatInstance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return tomcat.SetupWithManager(mgr, t.variant, t.options, o)
}

func (t *tomcatInstance) Demo() Demo { return &t.demo }

// tomcatDemo shows a release from its installation to its end.
type tomcatDemo struct {
	statesDemo

	variant *string
}

// Nodes is one: two pods on it cannot both have the port of the node.
func (d *tomcatDemo) Nodes() int { return 1 }

// Traffic is the application behind the release's Service. With classic there is none, as its name has the UID of the Tomcat
// in it.
func (d *tomcatDemo) Traffic() string {
	if *d.variant == tomcat.Classic {
		return ""
	}
	return "http://" + tomcatSample + "-tomcat." + tomcatNamespace + ".svc.cluster.local/sample/"
}

func (d *tomcatDemo) Summary(ctx context.Context, r client.Reader, choose func(english, japanese string) string) ([][2]string, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(tomcat.Kind)
	if err := r.List(ctx, all); err != nil {
		return nil, err
	}
	left := choose("nothing", "なし")
	if n := len(all.Items); n > 0 {
		left = "Tomcat " + strconv.Itoa(n)
	}
	return [][2]string{{choose("left", "残り"), left}}, nil
}
