package operators

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/maintpage"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// maintpageNamespace is the article's project: the operator and the pages are both in it.
const maintpageNamespace = "maintpage-operator"

func maintpageOperator() Operator {
	return Operator{
		Name:             "maintpage",
		Summary:          "a MaintPage turns a Service from an application to a maintenance page, and back",
		Source:           "A maintenance page with the Operator SDK (OpenShift, 2019)",
		AddToScheme:      maintpage.AddToScheme,
		Manifests:        maintpage.Manifests(),
		Namespace:        maintpageNamespace,
		ServiceAccount:   "maintpage-operator",
		LeaderElectionID: maintpage.LeaderElectionID,
		New: func() Instance {
			return &maintpageInstance{
				options: maintpage.Options{Variant: maintpage.Hardened},
				demo:    &maintpageDemo{},
			}
		},
	}
}

type maintpageInstance struct {
	options maintpage.Options
	demo    *maintpageDemo
}

func (m *maintpageInstance) Flags(fs *pflag.FlagSet) {
	fs.Var(oneOf{(*string)(&m.options.Variant), []string{string(maintpage.Hardened), string(maintpage.Classic)}},
		"variant", "which of the two operators: hardened, or classic as published, with its flaws")
}

func (m *maintpageInstance) Variant() string { return string(m.options.Variant) }

func (m *maintpageInstance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return maintpage.CRDs(m.options.Variant)
}

func (m *maintpageInstance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	options := m.options
	options.Controller = o
	return maintpage.SetupWithManager(mgr, options)
}

func (m *maintpageInstance) Demo() Demo { return m.demo }

// maintpageDemo shows the pages of the sample MaintPage in turn.
type maintpageDemo struct {
	pause time.Duration
}

// longestPause is more than anybody waits for the next page.
const longestPause = time.Hour

func (d *maintpageDemo) Flags(fs *pflag.FlagSet) {
	fs.DurationVar(&d.pause, "pause", 4*time.Second, "how long each page is shown")
}

func (d *maintpageDemo) Values() (map[string]any, error) {
	if d.pause < 0 || d.pause > longestPause {
		return nil, fmt.Errorf("--pause %v is not between 0s and %v", d.pause, longestPause)
	}
	return map[string]any{"pause": strconv.FormatFloat(d.pause.Seconds(), 'f', -1, 64)}, nil
}

// Nodes is one: the pages are pods.
func (d *maintpageDemo) Nodes() int { return 1 }

// Traffic is where the article asks for the page once a second.
func (d *maintpageDemo) Traffic() string {
	return "http://httpd." + maintpageNamespace + ".svc.cluster.local:8080"
}

// Caption is of a MaintPage's Service the labels of the pods that get its requests.
func (d *maintpageDemo) Caption(kind string, object json.RawMessage) string {
	var service struct {
		Metadata struct{ OwnerReferences []metav1.OwnerReference }
		Spec     struct{ Selector map[string]string }
	}
	if kind != "Service" || json.Unmarshal(object, &service) != nil || len(service.Spec.Selector) == 0 {
		return ""
	}
	ours := func(owner metav1.OwnerReference) bool { return owner.Kind == v1alpha1.MaintPageKind }
	if !slices.ContainsFunc(service.Metadata.OwnerReferences, ours) {
		return ""
	}
	return "→ " + shownBy(service.Spec.Selector)
}

// shownBy is the page that a selector selects: hardened has a label for it, classic only the name of an application or
// of a MaintPage.
func shownBy(selector map[string]string) string {
	if page := selector[maintpage.PageLabel]; page != "" {
		return page
	}
	return "app=" + selector["app"]
}

func (d *maintpageDemo) Summary(ctx context.Context, r client.Reader, _ func(english, japanese string) string) ([][2]string, error) {
	sample, err := maintpage.Sample()
	if err != nil {
		return nil, err
	}
	var page v1alpha1.MaintPage
	if err := r.Get(ctx, client.ObjectKey{Namespace: maintpageNamespace, Name: sample.Name}, &page); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var service corev1.Service
	app := client.ObjectKey{Namespace: maintpageNamespace, Name: page.Spec.AppConfig.AppName}
	if err := r.Get(ctx, app, &service); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	lines := [][2]string{{"status", string(page.Status.MaintPublishStatus)}}
	if len(service.Spec.Selector) > 0 {
		lines = append(lines, [2]string{"service", strings.Join([]string{service.Name, shownBy(service.Spec.Selector)}, " → ")})
	}
	return lines, nil
}
