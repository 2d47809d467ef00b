package format

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Position is where something is written.
type Position struct {
	// File as it was named to the loader.
	File string
	// Line and Column, from 1; 0 where they are not known, as for a test that is made of numbered manifests.
	Line, Column int
}

// Test is a chainsaw.kyverno.io/v1alpha1 Test.
type Test struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec TestSpec `json:"spec" check:"required"`
}

// TestSpec says what a test does. What is nil is inherited from the configuration.
type TestSpec struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// FailFast stops the run at the first failure.
	FailFast *bool `json:"failFast,omitempty"`
	// Timeouts by kind of operation; nil ones are the configuration's.
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	// Cluster is the name of the cluster to work on; nil: the default one.
	Cluster *string `json:"cluster,omitempty"`
	// Clusters that can be named.
	Clusters Clusters `json:"clusters,omitempty"`
	// Skip leaves the test out.
	Skip *bool `json:"skip,omitempty"`
	// Concurrent lets the test run beside others; nil means true.
	Concurrent *bool `json:"concurrent,omitempty"`
	// SkipDelete keeps what the test has made.
	SkipDelete *bool `json:"skipDelete,omitempty"`
	// Template says whether resources are templates.
	Template *bool `json:"template,omitempty"`
	// Compiler of expressions that name none.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Namespace to run in; empty: one of its own, that is removed at the end.
	Namespace string `json:"namespace,omitempty"`
	// NamespaceTemplate is what the namespace has beyond its name.
	NamespaceTemplate any `json:"namespaceTemplate,omitempty"`
	// NamespaceTemplateCompiler is the compiler of the expressions in it.
	NamespaceTemplateCompiler *Compiler `json:"namespaceTemplateCompiler,omitempty"`
	// FastNamespaceDeletion does not wait until the namespace is gone.
	FastNamespaceDeletion *bool `json:"fastNamespaceDeletion,omitempty"`
	// Scenarios are the matrix: the test runs once for each.
	Scenarios []Scenario `json:"scenarios,omitempty"`
	// Bindings are visible in every step.
	Bindings []Binding `json:"bindings,omitempty"`
	// Steps in order.
	Steps []TestStep `json:"steps" check:"required"`
	// Catch runs when a step fails, with the step's own catch.
	Catch []CatchFinally `json:"catch,omitempty"`
	// ForceTerminationGracePeriod is set in everything that has pods.
	ForceTerminationGracePeriod *metav1.Duration `json:"forceTerminationGracePeriod,omitempty"`
	// DelayBeforeCleanup is waited between the last step and the clean-up.
	DelayBeforeCleanup *metav1.Duration `json:"delayBeforeCleanup,omitempty"`
	// DeletionPropagationPolicy of deletes.
	DeletionPropagationPolicy *metav1.DeletionPropagation `json:"deletionPropagationPolicy,omitempty" check:"enum=Orphan|Background|Foreground"`
}

// Scenario is one row of a matrix.
type Scenario struct {
	// Name of it; may be empty.
	Name string `json:"name,omitempty"`
	// Bindings that differ from row to row.
	Bindings []Binding `json:"bindings,omitempty"`
}

// TestStep is one step of a test. Discover has already put the template it uses in its place: Use is then nil.
type TestStep struct {
	// Name of it; may be empty.
	Name string `json:"name,omitempty"`
	// Use names a step template; then the step has no operations of its own.
	Use *Use `json:"use,omitempty"`

	TestStepSpec `json:",inline"`

	// Position is where the step begins.
	Position Position `json:"-"`
	// TemplateFile is the step template that was put in its place; empty without one.
	TemplateFile string `json:"-"`
}

// TestStepSpec says what a step does. What is nil is inherited from the test.
type TestStepSpec struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// Timeouts by kind of operation; nil ones are the test's.
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	// DeletionPropagationPolicy of deletes.
	DeletionPropagationPolicy *metav1.DeletionPropagation `json:"deletionPropagationPolicy,omitempty" check:"enum=Orphan|Background|Foreground"`
	// Cluster is the name of the cluster to work on.
	Cluster *string `json:"cluster,omitempty"`
	// Clusters that can be named.
	Clusters Clusters `json:"clusters,omitempty"`
	// SkipDelete keeps what the step has made.
	SkipDelete *bool `json:"skipDelete,omitempty"`
	// Template says whether resources are templates.
	Template *bool `json:"template,omitempty"`
	// Compiler of expressions that name none.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Bindings are visible in every operation of the step.
	Bindings []Binding `json:"bindings,omitempty"`
	// Try is done in order until something fails.
	Try []Operation `json:"try,omitempty" check:"min=1"`
	// Catch is done when something failed.
	Catch []CatchFinally `json:"catch,omitempty"`
	// Finally is done at the end of the step.
	Finally []CatchFinally `json:"finally,omitempty"`
	// Cleanup is done at the end of the test.
	Cleanup []CatchFinally `json:"cleanup,omitempty"`
}

// Use puts a step template in the place of a step.
type Use struct {
	// Template is its file, relative to the folder of the test.
	Template string `json:"template" check:"required"`
	// With is what the template is given.
	With With `json:"with,omitzero"`

	// Position is where it is used.
	Position Position `json:"-"`
}

// With is what a step template is given.
type With struct {
	// Bindings overrule those of the template.
	Bindings []Binding `json:"bindings,omitempty"`
}

// StepTemplate is a chainsaw.kyverno.io/v1alpha1 StepTemplate: a step that several tests share.
type StepTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec StepTemplateSpec `json:"spec" check:"required"`
}

// StepTemplateSpec says what a step does that uses the template.
type StepTemplateSpec struct {
	// Bindings are the defaults of what the template can be given.
	Bindings []Binding `json:"bindings,omitempty"`
	// Try is done in order until something fails.
	Try []Operation `json:"try" check:"required,min=1"`
	// Catch is done when something failed.
	Catch []CatchFinally `json:"catch,omitempty"`
	// Finally is done at the end of the step.
	Finally []CatchFinally `json:"finally,omitempty"`
	// Cleanup is done at the end of the test.
	Cleanup []CatchFinally `json:"cleanup,omitempty"`
}

// OperationBase is what every operation may have beside its action.
type OperationBase struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// ContinueOnError goes on after a failure; the test has still failed.
	ContinueOnError *bool `json:"continueOnError,omitempty"`
	// Compiler of expressions that name none.
	Compiler *Compiler `json:"compiler,omitempty"`
}

// Operation is one thing to do in try: exactly one of its actions is set.
type Operation struct {
	OperationBase `json:",inline"`

	Apply    *Apply    `json:"apply,omitempty" check:"action"`
	Assert   *Assert   `json:"assert,omitempty" check:"action"`
	Command  *Command  `json:"command,omitempty" check:"action"`
	Create   *Create   `json:"create,omitempty" check:"action"`
	Delete   *Delete   `json:"delete,omitempty" check:"action"`
	Describe *Describe `json:"describe,omitempty" check:"action"`
	Error    *Error    `json:"error,omitempty" check:"action"`
	Events   *Events   `json:"events,omitempty" check:"action"`
	Get      *Get      `json:"get,omitempty" check:"action"`
	Patch    *Patch    `json:"patch,omitempty" check:"action"`
	PodLogs  *PodLogs  `json:"podLogs,omitempty" check:"action"`
	Proxy    *Proxy    `json:"proxy,omitempty" check:"action"`
	Script   *Script   `json:"script,omitempty" check:"action"`
	Sleep    *Sleep    `json:"sleep,omitempty" check:"action"`
	Update   *Update   `json:"update,omitempty" check:"action"`
	Wait     *Wait     `json:"wait,omitempty" check:"action"`

	// Position is where the operation begins.
	Position Position `json:"-"`
}

// CatchFinally is one thing to do in catch, finally or cleanup: exactly one of its actions is set.
type CatchFinally struct {
	// Description is free text.
	Description string `json:"description,omitempty"`
	// Compiler of expressions that name none.
	Compiler *Compiler `json:"compiler,omitempty"`

	PodLogs  *PodLogs  `json:"podLogs,omitempty" check:"action"`
	Events   *Events   `json:"events,omitempty" check:"action"`
	Describe *Describe `json:"describe,omitempty" check:"action"`
	Wait     *Wait     `json:"wait,omitempty" check:"action"`
	Get      *Get      `json:"get,omitempty" check:"action"`
	Delete   *Delete   `json:"delete,omitempty" check:"action"`
	Command  *Command  `json:"command,omitempty" check:"action"`
	Script   *Script   `json:"script,omitempty" check:"action"`
	Sleep    *Sleep    `json:"sleep,omitempty" check:"action"`

	// Position is where the operation begins.
	Position Position `json:"-"`
}

// Operation is the same as an operation of try, of which these are some.
func (c *CatchFinally) Operation() *Operation {
	return &Operation{
		OperationBase: OperationBase{Description: c.Description, Compiler: c.Compiler},
		PodLogs:       c.PodLogs,
		Events:        c.Events,
		Describe:      c.Describe,
		Wait:          c.Wait,
		Get:           c.Get,
		Delete:        c.Delete,
		Command:       c.Command,
		Script:        c.Script,
		Sleep:         c.Sleep,
		Position:      c.Position,
	}
}

// Type names the action by its key in the file, such as podLogs; it is empty if there is none.
func (o *Operation) Type() string {
	switch {
	case o.Apply != nil:
		return "apply"
	case o.Assert != nil:
		return "assert"
	case o.Command != nil:
		return "command"
	case o.Create != nil:
		return "create"
	case o.Delete != nil:
		return "delete"
	case o.Describe != nil:
		return "describe"
	case o.Error != nil:
		return "error"
	case o.Events != nil:
		return "events"
	case o.Get != nil:
		return "get"
	case o.Patch != nil:
		return "patch"
	case o.PodLogs != nil:
		return "podLogs"
	case o.Proxy != nil:
		return "proxy"
	case o.Script != nil:
		return "script"
	case o.Sleep != nil:
		return "sleep"
	case o.Update != nil:
		return "update"
	case o.Wait != nil:
		return "wait"
	}
	return ""
}

// Bindings of the action; nil for one that has none.
func (o *Operation) Bindings() []Binding {
	switch {
	case o.Apply != nil:
		return o.Apply.Bindings
	case o.Assert != nil:
		return o.Assert.Bindings
	case o.Command != nil:
		return o.Command.Bindings
	case o.Create != nil:
		return o.Create.Bindings
	case o.Delete != nil:
		return o.Delete.Bindings
	case o.Error != nil:
		return o.Error.Bindings
	case o.Patch != nil:
		return o.Patch.Bindings
	case o.Script != nil:
		return o.Script.Bindings
	case o.Update != nil:
		return o.Update.Bindings
	}
	return nil
}

// Outputs of the action; nil for one that has none.
func (o *Operation) Outputs() []Output {
	switch {
	case o.Apply != nil:
		return o.Apply.Outputs
	case o.Command != nil:
		return o.Command.Outputs
	case o.Create != nil:
		return o.Create.Outputs
	case o.Patch != nil:
		return o.Patch.Outputs
	case o.Proxy != nil:
		return o.Proxy.Outputs
	case o.Script != nil:
		return o.Script.Outputs
	case o.Update != nil:
		return o.Update.Outputs
	}
	return nil
}
