package operators

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/visitors"
)

// The operator and its sites are in one namespace, as in the book.
const (
	visitorsNamespace = "visitors-operator"
	visitorsSample    = "ex"
)

func visitorsOperator() Operator {
	return Operator{
		Name:             "visitors",
		Summary:          "a VisitorsApp is a site of three tiers that counts its visitors: MySQL, backend, frontend",
		Source:           "Kubernetes Operators (the book's Visitors site, 2020)",
		AddToScheme:      visitors.AddToScheme,
		Manifests:        visitors.Manifests(),
		Namespace:        visitorsNamespace,
		ServiceAccount:   "visitors-operator",
		LeaderElectionID: visitors.LeaderElectionID,
		New: func() Instance {
			return &visitorsInstance{options: visitors.Options{Variant: visitors.Hardened}, demo: &visitorsDemo{}}
		},
	}
}

type visitorsInstance struct {
	options visitors.Options
	demo    *visitorsDemo
}

func (v *visitorsInstance) Flags(fs *pflag.FlagSet) {
	fs.Var(oneOf{(*string)(&v.options.Variant), []string{string(visitors.Hardened), string(visitors.Classic)}},
		"variant", "which of the two operators: hardened, or classic as published, with its flaws")
}

func (v *visitorsInstance) Variant() string { return string(v.options.Variant) }

func (v *visitorsInstance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return visitors.CRDs(v.options.Variant)
}

func (v *visitorsInstance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	options := v.options
	options.Controller = o
	return visitors.SetupWithManager(mgr, options)
}

func (v *visitorsInstance) Demo() Demo { return v.demo }

// visitorsDemo shows a site from its first visit to its end.
type visitorsDemo struct{ statesDemo }

// Nodes is one: the tiers are pods.
func (d *visitorsDemo) Nodes() int { return 1 }

// Traffic is the page. Each request of it is a visit.
func (d *visitorsDemo) Traffic() string {
	return "http://" + visitorsSample + "-frontend-service." + visitorsNamespace + ".svc.cluster.local:3000"
}

func (d *visitorsDemo) Summary(ctx context.Context, r client.Reader, choose func(english, japanese string) string) ([][2]string, error) {
	var all appsv1.DeploymentList
	if err := r.List(ctx, &all, client.InNamespace(visitorsNamespace), client.MatchingLabels{"app": "visitors"}); err != nil {
		return nil, err
	}
	lines := [][2]string{{choose("left", "残り"), "Deployment " + strconv.Itoa(len(all.Items))}}
	for i := range all.Items {
		lines = append(lines, [2]string{all.Items[i].Name, fmt.Sprintf(choose("%d available", "利用可能 %d"), all.Items[i].Status.AvailableReplicas)})
	}
	return lines, nil
}
