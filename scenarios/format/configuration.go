package format

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Configuration is a chainsaw.kyverno.io/v1alpha2 Configuration: the defaults of tests and the options of a run.
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Spec is the content of the configuration.
	Spec ConfigurationSpec `json:"spec" check:"required"`
}

// ConfigurationSpec is the content of a configuration.
type ConfigurationSpec struct {
	// Cleanup configures the clean-up after a test.
	Cleanup CleanupOptions `json:"cleanup,omitzero"`
	// Clusters are further clusters that can be named.
	Clusters Clusters `json:"clusters,omitempty"`
	// Deletion configures deletions.
	Deletion DeletionOptions `json:"deletion,omitzero"`
	// Discovery configures the search for tests.
	Discovery DiscoveryOptions `json:"discovery,omitzero"`
	// Error configures what is run when a step fails.
	Error ErrorOptions `json:"error,omitzero"`
	// Execution configures how many tests run, and how often.
	Execution ExecutionOptions `json:"execution,omitzero"`
	// Namespace configures the namespace of tests.
	Namespace NamespaceOptions `json:"namespace,omitzero"`
	// Report configures the report of the run.
	Report *ReportOptions `json:"report,omitempty"`
	// Templating configures the evaluation of expressions in resources.
	Templating TemplatingOptions `json:"templating,omitzero"`
	// Timeouts are the default time limits.
	Timeouts DefaultTimeouts `json:"timeouts,omitzero"`
}

// CleanupOptions configures the clean-up after a test.
type CleanupOptions struct {
	// SkipDelete keeps the objects that the test created, and its namespace.
	SkipDelete bool `json:"skipDelete,omitempty"`
	// DelayBeforeCleanup is the pause, at the end of a test, before the objects of each step that created some are
	// deleted; nil: none.
	DelayBeforeCleanup *metav1.Duration `json:"delayBeforeCleanup,omitempty"`
}

// DeletionOptions configures deletions.
type DeletionOptions struct {
	// Propagation is the propagation policy; default Background.
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty" check:"enum=Orphan|Background|Foreground"`
}

// DiscoveryOptions configures the search for tests.
type DiscoveryOptions struct {
	// ExcludeTestRegex leaves out the tests whose name matches; empty: none.
	ExcludeTestRegex string `json:"excludeTestRegex,omitempty"`
	// IncludeTestRegex selects the tests whose name matches; empty: all.
	IncludeTestRegex string `json:"includeTestRegex,omitempty"`
	// TestFile is the name of test files; default chainsaw-test. Without an extension, .yaml and .yml are tried.
	TestFile string `json:"testFile,omitempty"`
	// FullName adds the folder to the names of tests.
	FullName bool `json:"fullName,omitempty"`
}

// ErrorOptions configures what is run when a step fails.
type ErrorOptions struct {
	// Catch is run before the catch of the test and of the step.
	Catch []CatchFinally `json:"catch,omitempty"`
}

// ExecutionOptions configures the execution of tests.
type ExecutionOptions struct {
	// FailFast begins no further test once one has failed. Tests that have begun run to their end.
	FailFast bool `json:"failFast,omitempty"`
	// Parallel is the number of tests that run at once; nil: 8.
	Parallel *int `json:"parallel,omitempty" check:"least=1"`
	// RepeatCount is the number of times that each test runs; nil: once.
	RepeatCount *int `json:"repeatCount,omitempty" check:"least=1"`
	// ForceTerminationGracePeriod is set, in whole seconds, in the Pods, Deployments, StatefulSets, DaemonSets, Jobs and
	// CronJobs that tests write; nil: it is not set.
	ForceTerminationGracePeriod *metav1.Duration `json:"forceTerminationGracePeriod,omitempty"`
}

// NamespaceOptions configures the namespace of tests.
type NamespaceOptions struct {
	// Name is the namespace of all tests, which is created if it does not exist, and then deleted at the end; empty: each
	// test has one of its own.
	Name string `json:"name,omitempty"`
	// Compiler is the language of the expressions in the template; nil: the default one.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Template is merged into the namespace that is created.
	Template any `json:"template,omitempty"`
	// FastDelete ends a test without waiting until its namespace is gone.
	FastDelete bool `json:"fastDelete,omitempty"`
}

// ReportFormat is a format of reports.
type ReportFormat string

// The formats of reports that Chainsaw has.
const (
	ReportJSON           ReportFormat = "JSON"
	ReportXML            ReportFormat = "XML"
	ReportJUnitTest      ReportFormat = "JUNIT-TEST"
	ReportJUnitStep      ReportFormat = "JUNIT-STEP"
	ReportJUnitOperation ReportFormat = "JUNIT-OPERATION"
)

// ReportOptions configures the report of the run.
type ReportOptions struct {
	// Format is the format of the report; default JSON. It is empty in a v1alpha1 configuration without a report.
	Format ReportFormat `json:"format,omitempty" check:"enum=JSON|XML|JUNIT-TEST|JUNIT-STEP|JUNIT-OPERATION"`
	// Path is the folder of the report; empty: the working directory.
	Path string `json:"path,omitempty"`
	// Name is the name of the file without its extension; default chainsaw-report.
	Name string `json:"name,omitempty"`
}

// TemplatingOptions configures the evaluation of expressions.
type TemplatingOptions struct {
	// Enabled reports whether expressions in resources are evaluated; default true.
	Enabled bool `json:"enabled"`
	// Compiler is the default language of expressions; nil: jp.
	Compiler *Compiler `json:"compiler,omitempty"`
}

// DefaultTimeouts are the default time limits by kind of operation.
type DefaultTimeouts struct {
	// Apply is that of apply, create, update and patch; default 5s.
	Apply metav1.Duration `json:"apply"`
	// Assert is that of assert; default 30s.
	Assert metav1.Duration `json:"assert"`
	// Cleanup is that of each deletion in the clean-up; default 30s.
	Cleanup metav1.Duration `json:"cleanup"`
	// Delete is that of delete; default 15s.
	Delete metav1.Duration `json:"delete"`
	// Error is that of error; default 30s.
	Error metav1.Duration `json:"error"`
	// Exec is that of all other operations; default 5s.
	Exec metav1.Duration `json:"exec"`
}
