package format

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActionBindings holds the bindings of one action.
type ActionBindings struct {
	// Bindings are visible in this action only.
	Bindings []Binding `json:"bindings,omitempty"`
}

func (a ActionBindings) bindings() []Binding { return a.Bindings }

// ActionCheck judges the result of a program.
type ActionCheck struct {
	// Check is an assertion tree for $stdout, $stderr and $error. Nil: the program must end with exit code 0.
	Check any `json:"check,omitempty" check:"tree"`
}

// ActionCheckRef is the asserted state of an object: File or Check, not both. A file may hold several, each of which is
// asserted.
type ActionCheckRef struct {
	FileRef `json:",inline"`

	// Check is an assertion tree. Its apiVersion, kind, name, namespace and labels select the objects; without an apiVersion
	// and a kind it concerns no object, only the values of its expressions.
	Check any `json:"resource,omitempty" check:"tree,object"`
	// Template reports whether expressions that select the objects are evaluated; nil: as the step says.
	Template *bool `json:"template,omitempty"`
}

// ActionClusters selects the cluster that an action works on.
type ActionClusters struct {
	// Cluster is its name, which may be an expression; nil: the step's.
	Cluster *string `json:"cluster,omitempty"`
	// Clusters are further clusters that Cluster can name.
	Clusters Clusters `json:"clusters,omitempty"`
}

// ActionDryRun is for actions that write objects.
type ActionDryRun struct {
	// DryRun has the API server do everything but store the object; nil: false.
	DryRun *bool `json:"dryRun,omitempty"`
}

// ActionEnv is for actions that run a program.
type ActionEnv struct {
	// Env holds additional environment variables, whose values must be strings. KUBECONFIG is that of the cluster, and
	// NAMESPACE is the test's namespace unless Env sets it.
	Env []Binding `json:"env,omitempty"`
	// SkipLogOutput leaves the program's output out of the report.
	SkipLogOutput bool `json:"skipLogOutput,omitempty"`
	// SkipCommandOutput leaves the command out of the report.
	SkipCommandOutput bool `json:"skipCommandOutput,omitempty"`
}

// ActionExpectations judge the answers of the API server. If none matches the object, an error fails the action.
type ActionExpectations struct {
	// Expect lists the expected answers.
	Expect []Expectation `json:"expect,omitempty"`
}

// ActionFormat is the format of printed objects: json, yaml, or an expression for one of them.
type ActionFormat struct {
	// Format is json, yaml or an expression for one of them; empty: kubectl's default.
	Format Expression `json:"format,omitempty" check:"format"`
}

// ActionObjectSelector names one object, or selects objects by their labels, not both. With neither it means all
// objects of the kind; [PodLogs] needs one of them. The namespace * means all namespaces.
type ActionObjectSelector struct {
	ObjectName `json:",inline"`

	// Selector is a label selector, as for kubectl's --selector.
	Selector Expression `json:"selector,omitempty"`
}

// ActionObject names one object of a kind or selects some.
type ActionObject struct {
	ObjectType           `json:",inline"`
	ActionObjectSelector `json:",inline"`
}

// ActionOutputs are bindings that later operations of the step see, including those of catch, finally and cleanup.
type ActionOutputs struct {
	// Outputs are the bindings, each with its value.
	Outputs []Output `json:"outputs,omitempty"`
}

func (a ActionOutputs) outputs() []Output { return a.Outputs }

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
	// Template reports whether expressions in the resource are evaluated; nil: as the step says.
	Template *bool `json:"template,omitempty"`
}

// ActionTimeout limits the time of one action.
type ActionTimeout struct {
	// Timeout is the limit; nil: the step's for this kind of action, see [Timeouts].
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Apply creates objects, or sends them as merge patches where they exist. It repeats requests that fail until its
// time is up.
type Apply struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionDryRun       `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionOutputs      `json:",inline"`
	ActionResourceRef  `json:",inline"`
	ActionTimeout      `json:",inline"`
}

// Assert waits until an object matches: one of those that the assertion selects is enough.
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

	// Entrypoint is the program: a path, or a name that is looked up on the PATH.
	Entrypoint string `json:"entrypoint" check:"required"`
	// Args are its arguments. $NAME and ${NAME} in them become environment variables; no shell is involved.
	Args []string `json:"args,omitempty"`
	// WorkDir is the working directory, relative to the folder of the test; nil: that folder.
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

// Delete deletes objects and waits until they are gone: those of File, or those that Ref selects. An object that does
// not exist is no error.
type Delete struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionTimeout      `json:",inline"`

	// Template reports whether expressions in the file or the reference are evaluated; nil: as the step says.
	Template *bool `json:"template,omitempty"`
	// File is the file of the objects, as in [FileRef].
	File Expression `json:"file,omitempty"`
	// Ref selects the objects.
	Ref *ObjectReference `json:"ref,omitempty"`
	// DeletionPropagationPolicy is the propagation policy; nil: the step's.
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

// Error waits until no object matches the assertion.
type Error struct {
	ActionBindings `json:",inline"`
	ActionCheckRef `json:",inline"`
	ActionClusters `json:",inline"`
	ActionTimeout  `json:",inline"`
}

// Events prints events. Name and selector are those of the events.
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

// Patch sends objects as merge patches, and fails where they do not exist.
type Patch struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionDryRun       `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionOutputs      `json:",inline"`
	ActionResourceRef  `json:",inline"`
	ActionTimeout      `json:",inline"`

	// Subresource is the subresource to patch, such as status; empty: the object itself.
	Subresource string `json:"subresource,omitempty"`
}

// PodLogs prints the logs of pods.
type PodLogs struct {
	ActionClusters       `json:",inline"`
	ActionObjectSelector `json:",inline"`
	ActionTimeout        `json:",inline"`

	// Container is the container whose log is printed; empty: all containers.
	Container Expression `json:"container,omitempty"`
	// Tail is the number of lines of each log; nil: kubectl's default.
	Tail *int `json:"tail,omitempty"`
}

// Proxy sends a GET request to a pod or a Service through the API server.
type Proxy struct {
	ActionClusters `json:",inline"`
	ActionOutputs  `json:",inline"`
	ActionTimeout  `json:",inline"`
	ObjectName     `json:",inline"`
	ObjectType     `json:",inline"`

	// TargetPort is the port's number or name.
	TargetPort Expression `json:"port,omitempty"`
	// TargetPath is the path of the request.
	TargetPath Expression `json:"path,omitempty"`
}

// Script runs a script in a shell.
type Script struct {
	ActionBindings `json:",inline"`
	ActionCheck    `json:",inline"`
	ActionClusters `json:",inline"`
	ActionEnv      `json:",inline"`
	ActionOutputs  `json:",inline"`
	ActionTimeout  `json:",inline"`

	// Content is the text of the script. Expressions in it are not evaluated.
	Content string `json:"content,omitempty"`
	// Shell is the shell; nil: sh.
	Shell *string `json:"shell,omitempty"`
	// ShellArgs are the shell's arguments before the script; empty: -c.
	ShellArgs []string `json:"shellArgs,omitempty"`
	// WorkDir is the working directory, relative to the folder of the test; nil: that folder.
	WorkDir *string `json:"workDir,omitempty"`
}

// Sleep waits for a fixed time.
type Sleep struct {
	// Duration is the time to wait.
	Duration metav1.Duration `json:"duration" check:"required"`
}

// Update replaces objects, and fails where they do not exist.
type Update struct {
	ActionBindings     `json:",inline"`
	ActionClusters     `json:",inline"`
	ActionDryRun       `json:",inline"`
	ActionExpectations `json:",inline"`
	ActionOutputs      `json:",inline"`
	ActionResourceRef  `json:",inline"`
	ActionTimeout      `json:",inline"`
}

// Wait waits as kubectl wait does. Its timeout becomes kubectl's --timeout.
type Wait struct {
	ActionTimeout  `json:",inline"`
	ActionFormat   `json:",inline"`
	ActionClusters `json:",inline"`
	ActionObject   `json:",inline"`

	// WaitFor is the state to wait for.
	WaitFor WaitFor `json:"for" check:"required"`
}

// WaitFor is the state that a Wait waits for. At least one field must be set. Of several, only the first of Deletion,
// Creation, Condition and JsonPath counts, and [Lint] warns.
type WaitFor struct {
	// Creation waits until an object exists.
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
	// Name is the type of the condition.
	Name Expression `json:"name" check:"required"`
	// Value is the status that the condition must have; nil: True.
	Value *Expression `json:"value,omitempty"`
}

// WaitForCreation waits until an object exists.
type WaitForCreation struct{}

// WaitForDeletion waits until the objects are gone.
type WaitForDeletion struct{}

// WaitForJsonPath waits until a field of each object has a value.
type WaitForJsonPath struct {
	// Path is a JSON path, such as {.status.phase}.
	Path Expression `json:"path" check:"required"`
	// Value is the value that the field must have; nil: any. It cannot be empty.
	Value *Expression `json:"value,omitempty"`
}

// Binding gives a name to a value.
type Binding struct {
	// Name is the name of the binding: a word, or an expression in parentheses that results in one.
	Name Expression `json:"name" check:"required,name"`
	// Compiler is the language of the expressions in the value; nil: the default one at its place.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Value is any value, in which expressions are evaluated.
	Value any `json:"value" check:"required"`

	// Position is the place at which the binding begins.
	Position Position `json:"-"`
}

// Output binds a name to a value. Its expressions see the object that was written as @, or a program's $stdout, $stderr
// and $error.
type Output struct {
	Binding `json:",inline"`

	// Match is an assertion tree. If it does not hold, nothing is bound; nil always holds.
	Match any `json:"match,omitempty" check:"tree"`
}

// Expectation judges an answer of the API server, if Match holds.
type Expectation struct {
	// Match is an assertion tree for the object; nil always holds.
	Match any `json:"match,omitempty" check:"tree"`
	// Check is an assertion tree for the object. $error is the API server's error, or null. If the check holds, an error
	// does not fail the action.
	Check any `json:"check" check:"required,tree"`
}

// Cluster is another cluster that tests can work on.
type Cluster struct {
	// Kubeconfig is the path of the cluster's kubeconfig, relative to the folder of the test; in a configuration, to the
	// working directory.
	Kubeconfig string `json:"kubeconfig" check:"required"`
	// Context is a context of the kubeconfig; empty: the current one.
	Context string `json:"context,omitempty"`
}

// Clusters maps names to clusters.
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
	// Namespace is the object's namespace; empty: the test's. For a cluster-scoped kind it is ignored.
	Namespace Expression `json:"namespace,omitempty"`
	// Name is the object's name.
	Name Expression `json:"name,omitempty"`
}

// ObjectReference names one object, or selects several by their labels. With neither a name nor labels it means all
// objects of the kind in the namespace.
type ObjectReference struct {
	ObjectType `json:",inline"`
	ObjectName `json:",inline"`

	// Labels are labels that the objects have. They are ignored if there is a name.
	Labels map[string]string `json:"labels,omitempty"`
}

// ObjectType is an API version and a kind.
type ObjectType struct {
	// APIVersion is a group and a version, such as apps/v1.
	APIVersion Expression `json:"apiVersion" check:"required"`
	// Kind is a kind, such as Deployment.
	Kind Expression `json:"kind" check:"required"`
}

// Timeouts are the time limits by kind of operation; nil ones are inherited.
type Timeouts struct {
	// Apply limits each object of apply, create, update and patch.
	Apply *metav1.Duration `json:"apply,omitempty"`
	// Assert limits each assertion of assert.
	Assert *metav1.Duration `json:"assert,omitempty"`
	// Cleanup limits the deletion of each object that the test has created, until the object is gone.
	Cleanup *metav1.Duration `json:"cleanup,omitempty"`
	// Delete limits delete, until the objects are gone.
	Delete *metav1.Duration `json:"delete,omitempty"`
	// Error limits each assertion of error.
	Error *metav1.Duration `json:"error,omitempty"`
	// Exec limits all others: command, script, wait, proxy, get, describe, events and podLogs.
	Exec *metav1.Duration `json:"exec,omitempty"`
}
