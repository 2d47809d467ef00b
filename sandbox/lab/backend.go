package lab

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/labapi"
)

// backend implements [labapi.Backend] on the lab.
type backend Lab

var _ labapi.Backend = (*backend)(nil)

func (b *backend) lab() *Lab { return (*Lab)(b) }

// Changed returns a channel that is closed at the next change of anything.
func (b *backend) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Operators returns the loaded operators.
func (b *backend) Operators() []v1alpha1.Operator {
	var out []v1alpha1.Operator
	for _, sv := range b.lab().supervisors() {
		out = append(out, sv.object())
	}
	slices.SortFunc(out, func(a, b v1alpha1.Operator) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (sv *supervisor) object() v1alpha1.Operator {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	o := v1alpha1.Operator{
		ObjectMeta: metav1.ObjectMeta{
			Name: sv.program.Name(), UID: sv.uid, Generation: sv.generation, CreationTimestamp: metav1.NewTime(sv.created),
		},
		Spec: *sv.spec.DeepCopy(), Status: *sv.status.DeepCopy(),
	}
	// A person may have paused the loop with a key; the spec does not show that.
	if o.Status.State == v1alpha1.OperatorRunning && sv.taps.Paused() {
		o.Status.State = v1alpha1.OperatorPaused
	}
	return o
}

// ValidateOperator returns why an operator cannot be loaded.
func (b *backend) ValidateOperator(name string, spec v1alpha1.OperatorSpec) field.ErrorList {
	program, found := b.lab().program(name)
	if !found {
		return field.ErrorList{field.NotSupported(field.NewPath("metadata", "name"), name, b.lab().programNames())}
	}
	if _, err := program.Complete(spec); err != nil {
		message := err.Error()
		if hint := sandbox.HintOf(err); hint != "" {
			message += "; " + hint
		}
		path, value := field.NewPath("spec", "parameters"), any(spec.Parameters)
		if wrong, ok := errors.AsType[*parameterError](err); ok && wrong.parameter == "variant" {
			path, value = field.NewPath("spec", "variant"), spec.Variant
		}
		return field.ErrorList{field.Invalid(path, value, message)}
	}
	return nil
}

// ApplyOperator loads an operator or changes its spec.
func (b *backend) ApplyOperator(name string, spec v1alpha1.OperatorSpec) error {
	return b.lab().apply(name, spec, false)
}

// apply loads an operator or changes its spec. With served a new one counts as one that can be started: if it ends before it
// serves, it is started again.
func (l *Lab) apply(name string, spec v1alpha1.OperatorSpec, served bool) error {
	program, found := l.program(name)
	if !found {
		return &sandbox.Problem{
			Err: fmt.Errorf("there is no operator %q", name), Hint: "operators: " + strings.Join(l.programNames(), ", "),
		}
	}
	spec, err := program.Complete(spec)
	if err != nil {
		return err
	}
	l.mu.Lock()
	sv := l.epoch.supervisors[name]
	if sv == nil {
		l.epoch.supervisors[name] = newSupervisor(l, l.epoch, program, spec, served)
	}
	l.mu.Unlock()
	if sv != nil {
		sv.change(spec)
	}
	l.notify()
	return nil
}

// DeleteOperator stops and unloads an operator.
func (b *backend) DeleteOperator(name string) error {
	l := b.lab()
	sv := l.supervisor(name)
	if sv == nil {
		return nil
	}
	err := sv.stop()
	l.mu.Lock()
	delete(l.epoch.supervisors, name)
	l.mu.Unlock()
	l.notify()
	return err
}

// OperatorMetrics returns the metrics of an operator, unless nothing of it runs or it has no taps.
func (b *backend) OperatorMetrics(name string) ([]byte, error) {
	sv := b.lab().supervisor(name)
	if sv == nil {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("operators").GroupResource(), name)
	}
	text, err := sv.taps.Metrics()
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return text, nil
}

// Loops returns the loops seen in this epoch.
func (b *backend) Loops() []v1alpha1.Loop {
	b.mu.Lock()
	loops := b.epoch.loops
	b.mu.Unlock()
	return loops.all()
}

// ValidateFault returns why a fault cannot happen.
func (b *backend) ValidateFault(spec v1alpha1.FaultSpec) field.ErrorList {
	errs := fault.Validate(spec)
	if known := sets.New(b.lab().programNames()...).Insert(b.options.InPods...); spec.Operator != "" && !known.Has(spec.Operator) {
		errs = append(errs, field.NotSupported(field.NewPath("spec", "operator"), spec.Operator, sets.List(known)))
	}
	if p := spec.ControlPlane; p != nil && b.options.Kill == nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "controlPlane"), "the lab did not start this control plane"))
	}
	return append(errs, b.validateMachines(spec)...)
}

// ArmFault arms a fault.
func (b *backend) ArmFault(name string, spec v1alpha1.FaultSpec) error {
	return b.lab().Faults().Arm(name, spec)
}

// ReleaseFault releases a fault, as [fault.Faults.Release] does.
func (b *backend) ReleaseFault(name string) error {
	b.lab().Faults().Release(name)
	return nil
}

// DisarmFault releases and forgets a fault.
func (b *backend) DisarmFault(name string) error {
	b.lab().Faults().Disarm(name)
	return nil
}

// FaultStatus returns the status of a fault of this epoch.
func (b *backend) FaultStatus(name string) (v1alpha1.FaultStatus, bool) {
	return b.lab().Faults().Status(name)
}
