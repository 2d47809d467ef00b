package operators

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
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
	variant *string
	pause   time.Duration
}

func (d *tomcatDemo) Flags(fs *pflag.FlagSet) {
	fs.DurationVar(&d.pause, "pause", 4*time.Second, "how long each state is shown")
}

func (d *tomcatDemo) Values() (map[string]any, error) {
	if d.pause < 0 || d.pause > longestPause {
		return nil, fmt.Errorf("--pause %v is not between 0s and %v", d.pause, longestPause)
	}
	return map[string]any{"pause": strconv.FormatFloat(d.pause.Seconds(), 'f', -1, 64)}, nil
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

// Caption is of a Deployment of the chart how many pods it wants and has.
func (d *tomcatDemo) Caption(kind string, object json.RawMessage) string {
	var deployment appsv1.Deployment
	if kind != "Deployment" || json.Unmarshal(object, &deployment) != nil || deployment.Spec.Replicas == nil {
		return ""
	}
	return fmt.Sprintf("%d wanted, %d available", *deployment.Spec.Replicas, deployment.Status.AvailableReplicas)
}

func (d *tomcatDemo) Summary(ctx context.Context, r client.Reader) ([][2]string, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(tomcat.Kind)
	if err := r.List(ctx, all); err != nil {
		return nil, err
	}
	left := "nothing"
	if n := len(all.Items); n > 0 {
		left = strconv.Itoa(n) + " Tomcat"
	}
	return [][2]string{{"left", left}}, nil
}
