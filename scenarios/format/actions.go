package format

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActionBindings holds the bindings of one action.
type ActionBindings struct {
	// Bindings are visible in this action only.
	Bindings []Binding `json:"bindings,omitempty"`
}

// ActionCheck judges the outcome of an action.
type ActionCheck struct {
	// Check is an assertion tree.
	Check any `json:"check,omitempty" check:"tree"`
}

// ActionCheckRef is the expected state of objects: File or Check, not both.
type ActionCheckRef struct {
	FileRef `json:",inline"`

	// Check is an assertion tree for resources.
	Check any `json:"resource,omitempty" check:"tree,object"`
	// Template reports whether the check is a template.
	Template *bool `json:"template,omitempty"`
}

// ActionClusters selects the cluster that an action works on.
type ActionClusters struct {
	// Cluster is its name; nil: the step's.
	Cluster *string `json:"cluster,omitempty"`
	// Clusters that can be named.
	Clusters Clusters `json:"clusters,omitempty"`
}

// ActionDryRun lets the API server do everything but store it.
type ActionDryRun struct {
	// DryRun sends the request as a dry run.
	DryRun *bool `json:"dryRun,omitempty"`
}

// ActionEnv is for actions that run a program.
type ActionEnv struct {
	// Env holds additional environment variables.
	Env []Binding `json:"env,omitempty"`
	// SkipLogOutput keeps its output from the log.
	SkipLogOutput bool `json:"skipLogOutput,omitempty"`
	// SkipCommandOutput keeps the command from the log.
	SkipCommandOutput bool `json:"skipCommandOutput,omitempty"`
}

// ActionExpectations judge the answers of the API server. Without one, an error fails the action.
type ActionExpectations struct {
	// Expect lists the expected answers.
	Expect []Expectation `json:"expect,omitempty"`
}

// ActionFormat is the format of printed objects: json, yaml, or an expression for one of them.
type ActionFormat struct {
	// Format is json, yaml or an expression for one of them.
	Format Expression `json:"format,omitempty" check:"format"`
}

// ActionObjectSelector names one object, or selects objects by their labels, not both.
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
	// Outputs are the bindings, each with its value.
	Outputs []Output `json:"outputs,omitempty"`
}

// FileRef names files: a path relative to the folder of the test, a pattern, or a URL.
type FileRef struct {
	// File is the path, pattern or URL.
	File Expression `json:"file,omitempty"`
}

// ActionResourceRef names the objects to write: File or Resource, not both.
type ActionResourceRef struct {
	FileRef `json:",inline"`

	// Resource is the object.
	Resource map[string]any `json:"resource,omitempty"`
	// Template reports whether the resource is a template.
	Template *bool `json:"template,omitempty"`
}

// ActionTimeout limits the time of one action.
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

// Assert waits until objects match.
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

	// Template reports whether the resource is a template.
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

// Error waits until no object matches.
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
	// Tail is the number of lines to print; nil: the default of kubectl.
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

	// Content is the text of the script.
	Content string `json:"content,omitempty"`
	// Shell that runs them; nil: sh.
	Shell *string `json:"shell,omitempty"`
	// ShellArgs come before the lines; nil: -c.
	ShellArgs []string `json:"shellArgs,omitempty"`
	// WorkDir it runs in; nil: the folder of the test.
	WorkDir *string `json:"workDir,omitempty"`
}

// Sleep waits for a fixed time.
type Sleep struct {
	// Duration is the time to wait.
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

// Wait waits as kubectl wait does.
type Wait struct {
	ActionTimeout  `json:",inline"`
	ActionFormat   `json:",inline"`
	ActionClusters `json:",inline"`
	ActionObject   `json:",inline"`

	// WaitFor is the state to wait for.
	WaitFor WaitFor `json:"for" check:"required"`
}

// WaitFor is the state that a Wait waits for: exactly one field is set.
type WaitFor struct {
	// Creation waits until the objects exist.
	Creation *WaitForCreation `json:"creation,omitempty" check:"action"`
	// Deletion waits until the objects are gone.
	Deletion *WaitForDeletion `json:"deletion,omitempty" check:"action"`
	// Condition waits for a condition of the status.
	Condition *WaitForCondition `json:"condition,omitempty" check:"action"`
	// JsonPath waits for a value at a JSON path.
	JsonPath *WaitForJsonPath `json:"jsonPath,omitempty" check:"action"`
}

// WaitForCondition waits for a condition of the status.
type WaitForCondition struct {
	// Name is its type.
	Name Expression `json:"name" check:"required"`
	// Value is its status; nil: true.
	Value *Expression `json:"value,omitempty"`
}

// WaitForCreation waits until the objects exist.
type WaitForCreation struct{}

// WaitForDeletion waits until the object is gone.
type WaitForDeletion struct{}

// WaitForJsonPath waits until a field of the object has a value.
type WaitForJsonPath struct {
	// Path such as {.status.phase}.
	Path Expression `json:"path" check:"required"`
	// Value to wait for; nil: any.
	Value *Expression `json:"value,omitempty"`
}

// Binding gives a name to a value.
type Binding struct {
	// Name of the binding: a word, or an expression in parentheses for one.
	Name Expression `json:"name" check:"required,name"`
	// Compiler of the expressions in the value.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Value may contain expressions.
	Value any `json:"value" check:"required"`

	// Position is the place at which the binding begins.
	Position Position `json:"-"`
}

// Output binds a name to a part of the outcome of an action, if the outcome matches Match.
type Output struct {
	Binding `json:",inline"`

	// Match is an assertion tree; nil matches everything.
	Match any `json:"match,omitempty" check:"tree"`
}

// Expectation judges an answer of the API server, if the object matches Match.
type Expectation struct {
	// Match is an assertion tree; nil matches everything.
	Match any `json:"match,omitempty" check:"tree"`
	// Check is an assertion tree.
	Check any `json:"check" check:"required,tree"`
}

// Cluster is another cluster that tests can work on.
type Cluster struct {
	// Kubeconfig is the path of the cluster's kubeconfig.
	Kubeconfig string `json:"kubeconfig" check:"required"`
	// Context is a context of the kubeconfig; empty: the current one.
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

// Expression is a string, or an expression in parentheses whose result is a string.
type Expression string

// ObjectName is a name in a namespace.
type ObjectName struct {
	// Namespace of it; empty: the test's.
	Namespace Expression `json:"namespace,omitempty"`
	// Name of it.
	Name Expression `json:"name,omitempty"`
}

// ObjectReference names one object, or selects several by their labels.
type ObjectReference struct {
	ObjectType `json:",inline"`
	ObjectName `json:",inline"`

	// Labels they have.
	Labels map[string]string `json:"labels,omitempty"`
}

// ObjectType is an API version and a kind.
type ObjectType struct {
	// APIVersion is a group and a version, such as apps/v1.
	APIVersion Expression `json:"apiVersion" check:"required"`
	// Kind is a kind, such as Deployment.
	Kind Expression `json:"kind" check:"required"`
}

// Timeouts by kind of operation; nil ones are inherited.
type Timeouts struct {
	// Apply is for apply, create, update and patch.
	Apply *metav1.Duration `json:"apply,omitempty"`
	// Assert is for assert.
	Assert *metav1.Duration `json:"assert,omitempty"`
	// Cleanup is for the clean-up.
	Cleanup *metav1.Duration `json:"cleanup,omitempty"`
	// Delete is for delete.
	Delete *metav1.Duration `json:"delete,omitempty"`
	// Error is for error.
	Error *metav1.Duration `json:"error,omitempty"`
	// Exec is for commands, scripts and collectors.
	Exec *metav1.Duration `json:"exec,omitempty"`
}
