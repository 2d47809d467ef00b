package format

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActionBindings are bindings for one action.
type ActionBindings struct {
	Bindings []Binding `json:"bindings,omitempty"`
}

// ActionCheck judges what came of an action.
type ActionCheck struct {
	// Check is an assertion tree.
	Check any `json:"check,omitempty" check:"tree"`
}

// ActionCheckRef says what is asserted: File or Check, not both.
type ActionCheckRef struct {
	FileRef `json:",inline"`

	// Check is an assertion tree for resources.
	Check any `json:"resource,omitempty" check:"tree,object"`
	// Template says whether it is a template.
	Template *bool `json:"template,omitempty"`
}

// ActionClusters says on which cluster an action works.
type ActionClusters struct {
	// Cluster is its name; nil: the step's.
	Cluster *string `json:"cluster,omitempty"`
	// Clusters that can be named.
	Clusters Clusters `json:"clusters,omitempty"`
}

// ActionDryRun lets the API server do everything but store it.
type ActionDryRun struct {
	DryRun *bool `json:"dryRun,omitempty"`
}

// ActionEnv is for actions that run a program.
type ActionEnv struct {
	// Env are more variables of its environment.
	Env []Binding `json:"env,omitempty"`
	// SkipLogOutput keeps its output from the log.
	SkipLogOutput bool `json:"skipLogOutput,omitempty"`
	// SkipCommandOutput keeps the command from the log.
	SkipCommandOutput bool `json:"skipCommandOutput,omitempty"`
}

// ActionExpectations judge the answers of the API server. Without one an error fails the action.
type ActionExpectations struct {
	Expect []Expectation `json:"expect,omitempty"`
}

// ActionFormat is how objects are printed: json, yaml, or an expression for one of them.
type ActionFormat struct {
	Format Expression `json:"format,omitempty" check:"format"`
}

// ActionObjectSelector names one object or selects some by their labels, not both.
type ActionObjectSelector struct {
	ObjectName `json:",inline"`

	// Selector of labels.
	Selector Expression `json:"selector,omitempty"`
}

// ActionObject names one object of a kind or selects some.
type ActionObject struct {
	ObjectType           `json:",inline"`
	ActionObjectSelector `json:",inline"`
}

// ActionOutputs are bindings that later operations of the step see.
type ActionOutputs struct {
	Outputs []Output `json:"outputs,omitempty"`
}

// FileRef names files: a path relative to the folder of the test, a pattern, or a URL.
type FileRef struct {
	File Expression `json:"file,omitempty"`
}

// ActionResourceRef says what is written: File or Resource, not both.
type ActionResourceRef struct {
	FileRef `json:",inline"`

	// Resource is the object.
	Resource map[string]any `json:"resource,omitempty"`
	// Template says whether it is a template.
	Template *bool `json:"template,omitempty"`
}

// ActionTimeout ends one action.
type ActionTimeout struct {
	// Timeout of it; nil: the step's for this kind of action.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Apply creates objects, or changes them where they exist.
type Apply struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionDryRun       `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionOutputs      `json:",inline"`
	ActionResourceRef  `json:",inline"`
	ActionTimeout      `json:",inline"`
}

// Assert waits until objects are as they should be.
type Assert struct {
	ActionBindings `json:",inline"`
	ActionCheckRef `json:",inline"`
	ActionClusters `json:",inline"`
	ActionTimeout  `json:",inline"`
}

// Command runs a program.
type Command struct {
	ActionBindings `json:",inline"`
	ActionCheck    `json:",inline"`
	ActionClusters `json:",inline"`
	ActionEnv      `json:",inline"`
	ActionOutputs  `json:",inline"`
	ActionTimeout  `json:",inline"`

	// Entrypoint is the program.
	Entrypoint string `json:"entrypoint" check:"required"`
	// Args of it.
	Args []string `json:"args,omitempty"`
	// WorkDir it runs in; nil: the folder of the test.
	WorkDir *string `json:"workDir,omitempty"`
}

// Create creates objects and fails where they exist.
type Create struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionDryRun       `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionOutputs      `json:",inline"`
	ActionResourceRef  `json:",inline"`
	ActionTimeout      `json:",inline"`
}

// Delete deletes objects and waits until they are gone: those of File, or those that Ref means.
type Delete struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionTimeout      `json:",inline"`

	// Template says whether it is a template.
	Template *bool `json:"template,omitempty"`
	// File of the objects.
	File Expression `json:"file,omitempty"`
	// Ref means the objects.
	Ref *ObjectReference `json:"ref,omitempty"`
	// DeletionPropagationPolicy of it; nil: the step's.
	DeletionPropagationPolicy *metav1.DeletionPropagation `json:"deletionPropagationPolicy,omitempty" check:"enum=Orphan|Background|Foreground"`
}

// Describe prints what kubectl describe prints.
type Describe struct {
	ActionClusters `json:",inline"`
	ActionObject   `json:",inline"`
	ActionTimeout  `json:",inline"`

	// ShowEvents prints the events of the objects too; nil: as kubectl does.
	ShowEvents *bool `json:"showEvents,omitempty"`
}

// Error waits until no object is as it should not be.
type Error struct {
	ActionBindings `json:",inline"`
	ActionCheckRef `json:",inline"`
	ActionClusters `json:",inline"`
	ActionTimeout  `json:",inline"`
}

// Events prints events.
type Events struct {
	ActionClusters       `json:",inline"`
	ActionFormat         `json:",inline"`
	ActionObjectSelector `json:",inline"`
	ActionTimeout        `json:",inline"`
}

// Get prints objects.
type Get struct {
	ActionClusters `json:",inline"`
	ActionFormat   `json:",inline"`
	ActionObject   `json:",inline"`
	ActionTimeout  `json:",inline"`
}

// Patch changes objects that exist by a merge patch.
type Patch struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionDryRun       `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionOutputs      `json:",inline"`
	ActionResourceRef  `json:",inline"`
	ActionTimeout      `json:",inline"`

	// Subresource to patch, such as status.
	Subresource string `json:"subresource,omitempty"`
}

// PodLogs prints the logs of pods.
type PodLogs struct {
	ActionClusters       `json:",inline"`
	ActionObjectSelector `json:",inline"`
	ActionTimeout        `json:",inline"`

	// Container to print; empty: all.
	Container Expression `json:"container,omitempty"`
	// Tail is the number of lines to print; nil: as kubectl does.
	Tail *int `json:"tail,omitempty"`
}

// Proxy asks a pod or a service through the API server.
type Proxy struct {
	ActionClusters `json:",inline"`
	ActionOutputs  `json:",inline"`
	ActionTimeout  `json:",inline"`
	ObjectName     `json:",inline"`
	ObjectType     `json:",inline"`

	// TargetPort is the port.
	TargetPort Expression `json:"port,omitempty"`
	// TargetPath is the path.
	TargetPath Expression `json:"path,omitempty"`
}

// Script runs lines in a shell.
type Script struct {
	ActionBindings `json:",inline"`
	ActionCheck    `json:",inline"`
	ActionClusters `json:",inline"`
	ActionEnv      `json:",inline"`
	ActionOutputs  `json:",inline"`
	ActionTimeout  `json:",inline"`

	// Content is the lines.
	Content string `json:"content,omitempty"`
	// Shell that runs them; nil: sh.
	Shell *string `json:"shell,omitempty"`
	// ShellArgs come before the lines; nil: -c.
	ShellArgs []string `json:"shellArgs,omitempty"`
	// WorkDir it runs in; nil: the folder of the test.
	WorkDir *string `json:"workDir,omitempty"`
}

// Sleep waits.
type Sleep struct {
	Duration metav1.Duration `json:"duration" check:"required"`
}

// Update replaces objects that exist.
type Update struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionDryRun       `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionOutputs      `json:",inline"`
	ActionResourceRef  `json:",inline"`
	ActionTimeout      `json:",inline"`
}

// Wait waits for something that kubectl wait knows.
type Wait struct {
	ActionTimeout  `json:",inline"`
	ActionFormat   `json:",inline"`
	ActionClusters `json:",inline"`
	ActionObject   `json:",inline"`

	// WaitFor is what it waits for.
	WaitFor WaitFor `json:"for" check:"required"`
}

// WaitFor is what a wait waits for: one of them.
type WaitFor struct {
	Creation  *WaitForCreation  `json:"creation,omitempty" check:"action"`
	Deletion  *WaitForDeletion  `json:"deletion,omitempty" check:"action"`
	Condition *WaitForCondition `json:"condition,omitempty" check:"action"`
	JsonPath  *WaitForJsonPath  `json:"jsonPath,omitempty" check:"action"`
}

// WaitForCondition waits for a condition of the status.
type WaitForCondition struct {
	// Name is its type.
	Name Expression `json:"name" check:"required"`
	// Value is its status; nil: true.
	Value *Expression `json:"value,omitempty"`
}

// WaitForCreation waits until the object is there.
type WaitForCreation struct{}

// WaitForDeletion waits until the object is gone.
type WaitForDeletion struct{}

// WaitForJsonPath waits until something in the object has a value.
type WaitForJsonPath struct {
	// Path such as {.status.phase}.
	Path Expression `json:"path" check:"required"`
	// Value it has; nil: any.
	Value *Expression `json:"value,omitempty"`
}

// Binding gives a name to a value.
type Binding struct {
	// Name of it: a word, or an expression in parentheses for one.
	Name Expression `json:"name" check:"required,name"`
	// Compiler of the expressions in the value.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Value may have expressions in it.
	Value any `json:"value" check:"required"`

	// Position is where the binding begins.
	Position Position `json:"-"`
}

// Output gives a name to a part of what came of an action, if that is as Match says.
type Output struct {
	Binding `json:",inline"`

	// Match is an assertion tree; nil matches everything.
	Match any `json:"match,omitempty" check:"tree"`
}

// Expectation judges an answer of the API server, if the object is as Match says.
type Expectation struct {
	// Match is an assertion tree; nil matches everything.
	Match any `json:"match,omitempty" check:"tree"`
	// Check is an assertion tree.
	Check any `json:"check" check:"required,tree"`
}

// Cluster is another cluster that tests can work on.
type Cluster struct {
	// Kubeconfig is the path of its kubeconfig.
	Kubeconfig string `json:"kubeconfig" check:"required"`
	// Context in that; empty: the current one.
	Context string `json:"context,omitempty"`
}

// Clusters by the names they are meant by.
type Clusters map[string]Cluster

// Compiler is the language of expressions: jp (JMESPath) or cel.
type Compiler string

// The compilers.
const (
	CompilerJP  Compiler = "jp"
	CompilerCEL Compiler = "cel"
)

// Expression is a text, or in parentheses an expression that gives one.
type Expression string

// ObjectName is a name in a namespace.
type ObjectName struct {
	// Namespace of it; empty: the test's.
	Namespace Expression `json:"namespace,omitempty"`
	// Name of it.
	Name Expression `json:"name,omitempty"`
}

// ObjectReference means one object by its name, or several by their labels.
type ObjectReference struct {
	ObjectType `json:",inline"`
	ObjectName `json:",inline"`

	// Labels they have.
	Labels map[string]string `json:"labels,omitempty"`
}

// ObjectType is an API version and a kind.
type ObjectType struct {
	APIVersion Expression `json:"apiVersion" check:"required"`
	Kind       Expression `json:"kind" check:"required"`
}

// Timeouts by kind of operation.
type Timeouts struct {
	Apply   *metav1.Duration `json:"apply,omitempty"`
	Assert  *metav1.Duration `json:"assert,omitempty"`
	Cleanup *metav1.Duration `json:"cleanup,omitempty"`
	Delete  *metav1.Duration `json:"delete,omitempty"`
	Error   *metav1.Duration `json:"error,omitempty"`
	Exec    *metav1.Duration `json:"exec,omitempty"`
}
