package format

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Position is a place in a file.
type Position struct {
	// File is the path as it was given to the loader.
	File string
	// Line and Column count from 1. They are 0 where they are not known, as for a test made of numbered manifests.
	Line, Column int
}

// Test is a chainsaw.kyverno.io/v1alpha1 Test.
type Test struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Spec is the content of the test.
	Spec TestSpec `json:"spec" check:"required"`
}

// TestSpec is the content of a test. Nil fields are inherited from the configuration.
type TestSpec struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// FailFast has no effect here: that of the configuration counts.
	FailFast *bool `json:"failFast,omitempty"`
	// Timeouts are the time limits by kind of operation; nil ones are inherited from the configuration.
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	// Cluster is the name of the cluster to work on, which may be an expression; nil: the cluster of the run.
	Cluster *string `json:"cluster,omitempty"`
	// Clusters are further clusters that can be named.
	Clusters Clusters `json:"clusters,omitempty"`
	// Skip leaves the test out; nil: false.
	Skip *bool `json:"skip,omitempty"`
	// Concurrent lets the test run at the same time as others; nil: true.
	Concurrent *bool `json:"concurrent,omitempty"`
	// SkipDelete keeps the objects that the test has created, and its namespace.
	SkipDelete *bool `json:"skipDelete,omitempty"`
	// Template reports whether expressions in resources are evaluated.
	Template *bool `json:"template,omitempty"`
	// Compiler is the default language of expressions.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Namespace is the namespace to run in; empty: that of the configuration, or else a new one with a name of its own. A
	// namespace that the test has created is deleted at the end.
	Namespace string `json:"namespace,omitempty"`
	// NamespaceTemplate is merged into the namespace that is created; nil: the template of the configuration.
	NamespaceTemplate any `json:"namespaceTemplate,omitempty"`
	// NamespaceTemplateCompiler is the language of the expressions in NamespaceTemplate; nil: the default one.
	NamespaceTemplateCompiler *Compiler `json:"namespaceTemplateCompiler,omitempty"`
	// FastNamespaceDeletion ends the test without waiting until its namespace is gone.
	FastNamespaceDeletion *bool `json:"fastNamespaceDeletion,omitempty"`
	// Scenarios are the rows of a matrix: the test runs once for each; empty: once.
	Scenarios []Scenario `json:"scenarios,omitempty"`
	// Bindings are visible in every step.
	Bindings []Binding `json:"bindings,omitempty"`
	// Steps are run in order, until one fails.
	Steps []TestStep `json:"steps" check:"required"`
	// Catch is run before the Catch of a step that fails.
	Catch []CatchFinally `json:"catch,omitempty"`
	// ForceTerminationGracePeriod is set, in whole seconds, in the Pods, Deployments, StatefulSets, DaemonSets, Jobs and
	// CronJobs that the test writes.
	ForceTerminationGracePeriod *metav1.Duration `json:"forceTerminationGracePeriod,omitempty"`
	// DelayBeforeCleanup is the pause, at the end of the test, before the objects of each step that created some are
	// deleted.
	DelayBeforeCleanup *metav1.Duration `json:"delayBeforeCleanup,omitempty"`
	// DeletionPropagationPolicy is the propagation policy of deletions, also in the clean-up.
	DeletionPropagationPolicy *metav1.DeletionPropagation `json:"deletionPropagationPolicy,omitempty" check:"enum=Orphan|Background|Foreground"`
}

// Scenario is one row of a matrix.
type Scenario struct {
	// Name is the name of the row; may be empty.
	Name string `json:"name,omitempty"`
	// Bindings are the variables of this row.
	Bindings []Binding `json:"bindings,omitempty"`
}

// TestStep is one step of a test. [Discover] has already replaced a step that uses a template, so Use is then nil.
type TestStep struct {
	// Name is the name of the step; may be empty.
	Name string `json:"name,omitempty"`
	// Use names a step template. Such a step has no operations of its own.
	Use *Use `json:"use,omitempty"`

	TestStepSpec `json:",inline"`

	// Position is the place at which the step begins.
	Position Position `json:"-"`
	// TemplateFile is the step template that replaced the step; empty if there is none.
	TemplateFile string `json:"-"`
}

// TestStepSpec is the content of a step. Nil fields are inherited from the test.
type TestStepSpec struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// Timeouts are the time limits by kind of operation; nil ones are inherited from the test.
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	// DeletionPropagationPolicy is the propagation policy of deletions, also in the clean-up.
	DeletionPropagationPolicy *metav1.DeletionPropagation `json:"deletionPropagationPolicy,omitempty" check:"enum=Orphan|Background|Foreground"`
	// Cluster is the name of the cluster to work on, which may be an expression.
	Cluster *string `json:"cluster,omitempty"`
	// Clusters are further clusters that can be named.
	Clusters Clusters `json:"clusters,omitempty"`
	// SkipDelete keeps the objects that the step has created.
	SkipDelete *bool `json:"skipDelete,omitempty"`
	// Template reports whether expressions in resources are evaluated.
	Template *bool `json:"template,omitempty"`
	// Compiler is the default language of expressions.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Bindings are visible in every operation of the step.
	Bindings []Binding `json:"bindings,omitempty"`
	// Try is run in order until an operation fails that has no ContinueOnError.
	Try []Operation `json:"try,omitempty" check:"min=1"`
	// Catch is run, all of it, when an operation of this step or of one before it has failed.
	Catch []CatchFinally `json:"catch,omitempty"`
	// Finally is run, all of it, at the end of the step, also if the step failed or the run was interrupted.
	Finally []CatchFinally `json:"finally,omitempty"`
	// Cleanup is run, all of it, at the end of the test, after the objects that the step created were deleted.
	Cleanup []CatchFinally `json:"cleanup,omitempty"`
}

// Use replaces a step by a step template.
type Use struct {
	// Template is the template's file, relative to the folder of the test.
	Template string `json:"template" check:"required"`
	// With holds the values for the template.
	With With `json:"with,omitzero"`

	// Position is the place at which the template is used.
	Position Position `json:"-"`
}

// With holds the values for a step template.
type With struct {
	// Bindings override those of the template.
	Bindings []Binding `json:"bindings,omitempty"`
}

// StepTemplate is a chainsaw.kyverno.io/v1alpha1 StepTemplate: a step that several tests share.
type StepTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Spec is the content of the template.
	Spec StepTemplateSpec `json:"spec" check:"required"`
}

// StepTemplateSpec is the content of a step template.
type StepTemplateSpec struct {
	// Bindings are the template's parameters with their default values.
	Bindings []Binding `json:"bindings,omitempty"`
	// Try is run in order until an operation fails that has no ContinueOnError.
	Try []Operation `json:"try" check:"required,min=1"`
	// Catch is run, all of it, when an operation of this step or of one before it has failed.
	Catch []CatchFinally `json:"catch,omitempty"`
	// Finally is run, all of it, at the end of the step, also if the step failed or the run was interrupted.
	Finally []CatchFinally `json:"finally,omitempty"`
	// Cleanup is run, all of it, at the end of the test, after the objects that the step created were deleted.
	Cleanup []CatchFinally `json:"cleanup,omitempty"`
}

// OperationBase holds the fields that every operation has besides its action.
type OperationBase struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// ContinueOnError runs the next operations even if this one fails; the test still fails. It has no effect if the
	// operation cannot begin, as when its file is missing.
	ContinueOnError *bool `json:"continueOnError,omitempty"`
	// Compiler is the default language of expressions, from this operation to the end of the step; nil: as before it.
	Compiler *Compiler `json:"compiler,omitempty"`
}

// Operation is one operation of try. Exactly one of its actions is set.
type Operation struct {
	OperationBase `json:",inline"`

	// Apply creates objects, or patches them where they exist.
	Apply *Apply `json:"apply,omitempty" check:"action"`
	// Assert waits until an object matches.
	Assert *Assert `json:"assert,omitempty" check:"action"`
	// Command runs a program.
	Command *Command `json:"command,omitempty" check:"action"`
	// Create creates objects, and fails where they exist.
	Create *Create `json:"create,omitempty" check:"action"`
	// Delete deletes objects, and waits until they are gone.
	Delete *Delete `json:"delete,omitempty" check:"action"`
	// Describe prints objects as kubectl describe does.
	Describe *Describe `json:"describe,omitempty" check:"action"`
	// Error waits until no object matches.
	Error *Error `json:"error,omitempty" check:"action"`
	// Events prints events.
	Events *Events `json:"events,omitempty" check:"action"`
	// Get prints objects.
	Get *Get `json:"get,omitempty" check:"action"`
	// Patch patches existing objects.
	Patch *Patch `json:"patch,omitempty" check:"action"`
	// PodLogs prints the logs of pods.
	PodLogs *PodLogs `json:"podLogs,omitempty" check:"action"`
	// Proxy sends a GET request to a pod or a Service through the API server.
	Proxy *Proxy `json:"proxy,omitempty" check:"action"`
	// Script runs a shell script.
	Script *Script `json:"script,omitempty" check:"action"`
	// Sleep waits for a fixed time.
	Sleep *Sleep `json:"sleep,omitempty" check:"action"`
	// Update replaces existing objects.
	Update *Update `json:"update,omitempty" check:"action"`
	// Wait waits as kubectl wait does.
	Wait *Wait `json:"wait,omitempty" check:"action"`

	// Position is the place at which the operation begins.
	Position Position `json:"-"`
}

// CatchFinally is one operation of catch, finally or cleanup. Exactly one of its actions is set.
type CatchFinally struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// Compiler is the default language of expressions, from this operation to the end of the step; nil: as before it.
	Compiler *Compiler `json:"compiler,omitempty"`

	// PodLogs prints the logs of pods.
	PodLogs *PodLogs `json:"podLogs,omitempty" check:"action"`
	// Events prints events.
	Events *Events `json:"events,omitempty" check:"action"`
	// Describe prints objects as kubectl describe does.
	Describe *Describe `json:"describe,omitempty" check:"action"`
	// Wait waits as kubectl wait does.
	Wait *Wait `json:"wait,omitempty" check:"action"`
	// Get prints objects.
	Get *Get `json:"get,omitempty" check:"action"`
	// Delete deletes objects, and waits until they are gone.
	Delete *Delete `json:"delete,omitempty" check:"action"`
	// Command runs a program.
	Command *Command `json:"command,omitempty" check:"action"`
	// Script runs a shell script.
	Script *Script `json:"script,omitempty" check:"action"`
	// Sleep waits for a fixed time.
	Sleep *Sleep `json:"sleep,omitempty" check:"action"`

	// Position is the place at which the operation begins.
	Position Position `json:"-"`
}

// Operation returns the same operation as an operation of try.
func (c *CatchFinally) Operation() *Operation {
	o := &Operation{OperationBase: OperationBase{Description: c.Description, Compiler: c.Compiler}, Position: c.Position}
	from, to := reflect.ValueOf(c).Elem(), reflect.ValueOf(o).Elem()
	for i := range from.NumField() {
		if f := from.Type().Field(i); f.Tag.Get("check") == "action" {
			to.FieldByName(f.Name).Set(from.Field(i))
		}
	}
	return o
}

// action returns the action that is set, and its key in the file; nil if none is.
func (o *Operation) action() (key string, action any) {
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("check") == "action" && !v.Field(i).IsNil() {
			key, _, _ = strings.Cut(f.Tag.Get("json"), ",")
			return key, v.Field(i).Interface()
		}
	}
	return "", nil
}

// Type returns the action's key in the file, such as podLogs; empty if no action is set.
func (o *Operation) Type() string {
	key, _ := o.action()
	return key
}

// Bindings returns the bindings of the action; nil if it has none.
func (o *Operation) Bindings() []Binding {
	_, a := o.action()
	if with, has := a.(interface{ bindings() []Binding }); has {
		return with.bindings()
	}
	return nil
}

// Outputs returns the outputs of the action; nil if it has none.
func (o *Operation) Outputs() []Output {
	_, a := o.action()
	if with, has := a.(interface{ outputs() []Output }); has {
		return with.outputs()
	}
	return nil
}
