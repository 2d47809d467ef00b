package fault

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

var (
	podActions = []v1alpha1.PodAction{
		v1alpha1.PodKill, v1alpha1.PodOOMKill, v1alpha1.PodUnready, v1alpha1.PodCrash, v1alpha1.PodStartLate, v1alpha1.PodSlow,
	}
	nodeActions = []v1alpha1.NodeAction{v1alpha1.NodeLost, v1alpha1.NodeRestart}
)

// maxExitCode is the largest exit code of a process.
const maxExitCode = 255

func validatePod(p *field.Path, x *v1alpha1.PodFault) field.ErrorList {
	if x.Action == "" {
		return field.ErrorList{field.Required(p.Child("action"), "one of Kill, OOMKill, Unready, Crash, StartLate, Slow")}
	}
	errs := known(p.Child("action"), x.Action, podActions)
	if len(errs) > 0 {
		return errs // the rest depends on it
	}
	errs = append(errs, oneNamespace(p.Child("namespace"), x.Namespace)...)
	errs = append(errs, nameOrStar(p.Child("name"), x.Name)...)
	errs = append(errs, validation.ValidateLabels(x.Selector, p.Child("selector"))...)
	if strings.ContainsAny(x.Container, "*/?[]") {
		errs = append(errs, field.Invalid(p.Child("container"), x.Container, "is to be the name of one container; leave it out for all"))
	}
	if c := x.ExitCode; c != nil {
		switch {
		case x.Action != v1alpha1.PodCrash:
			errs = append(errs, field.Forbidden(p.Child("exitCode"), "only a Crash has one of its own"))
		case *c < 0 || *c > maxExitCode:
			errs = append(errs, field.Invalid(p.Child("exitCode"), *c, "must be between 0 and 255"))
		}
	}
	errs = append(errs, validateAfter(p.Child("after"), x)...)
	once := x.Action == v1alpha1.PodKill || x.Action == v1alpha1.PodOOMKill
	return append(errs, validateFor(p.Child("for"), x.For, once, string(x.Action)+" happens once")...)
}

func validateAfter(p *field.Path, x *v1alpha1.PodFault) field.ErrorList {
	switch {
	case x.Action == v1alpha1.PodStartLate && x.After == nil:
		return field.ErrorList{field.Required(p, "how late containers start, such as 5s")}
	case x.After == nil:
		return nil
	case x.Action == v1alpha1.PodStartLate:
		return positive(p, *x.After)
	case x.Action == v1alpha1.PodCrash:
		return notNegative(p, *x.After)
	}
	return field.ErrorList{field.Forbidden(p, "only a Crash and a StartLate come a while after a start")}
}

// validateFor checks the duration of an effect. With once the effect has none, and a duration is forbidden for the
// reason in why.
func validateFor(p *field.Path, d *metav1.Duration, once bool, why string) field.ErrorList {
	switch {
	case d == nil:
		return nil
	case once:
		return field.ErrorList{field.Forbidden(p, why)}
	}
	return positive(p, *d)
}

func validateNode(p *field.Path, x *v1alpha1.NodeFault) field.ErrorList {
	if x.Action == "" {
		return field.ErrorList{field.Required(p.Child("action"), "Lost or Restart")}
	}
	errs := known(p.Child("action"), x.Action, nodeActions)
	errs = append(errs, nameOrStar(p.Child("name"), x.Name)...)
	return append(errs, validateFor(p.Child("for"), x.For, x.Action == v1alpha1.NodeRestart, "only a node that is Lost stays away")...)
}

func validateImage(p *field.Path, x *v1alpha1.ImageFault) field.ErrorList {
	var errs field.ErrorList
	if x.Name == "" {
		errs = append(errs, field.Required(p.Child("name"), "a name or pattern of images, such as nginx:1.*; ** for all"))
	}
	errs = append(errs, oneNamespace(p.Child("namespace"), x.Namespace)...)
	errs = append(errs, notNegative(p.Child("delay"), x.Delay)...)
	return append(errs, validateFor(p.Child("for"), x.For, false, "")...)
}

func nameOrStar(p *field.Path, name string) field.ErrorList {
	if !strings.ContainsAny(name, `/?[]\`) {
		return nil
	}
	return field.ErrorList{field.Invalid(p, name, "is to be a name, in which only * stands for others")}
}
