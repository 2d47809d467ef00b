package format

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Configuration is a chainsaw.kyverno.io/v1alpha2 Configuration: how tests are run unless they say otherwise.
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ConfigurationSpec `json:"spec" check:"required"`
}

// ConfigurationSpec is how tests are run.
type ConfigurationSpec struct {
	Cleanup    CleanupOptions    `json:"cleanup,omitzero"`
	Clusters   Clusters          `json:"clusters,omitempty"`
	Deletion   DeletionOptions   `json:"deletion,omitzero"`
	Discovery  DiscoveryOptions  `json:"discovery,omitzero"`
	Error      ErrorOptions      `json:"error,omitzero"`
	Execution  ExecutionOptions  `json:"execution,omitzero"`
	Namespace  NamespaceOptions  `json:"namespace,omitzero"`
	Report     *ReportOptions    `json:"report,omitempty"`
	Templating TemplatingOptions `json:"templating,omitzero"`
	Timeouts   DefaultTimeouts   `json:"timeouts,omitzero"`
}

// CleanupOptions is how what tests made is removed.
type CleanupOptions struct {
	// SkipDelete keeps it.
	SkipDelete bool `json:"skipDelete,omitempty"`
	// DelayBeforeCleanup is waited between the last step and the clean-up.
	DelayBeforeCleanup *metav1.Duration `json:"delayBeforeCleanup,omitempty"`
}

// DeletionOptions is how objects are deleted.
type DeletionOptions struct {
	// Propagation of deletes; default Background.
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty" check:"enum=Orphan|Background|Foreground"`
}

// DiscoveryOptions is how tests are found.
type DiscoveryOptions struct {
	// ExcludeTestRegex leaves tests out by their names.
	ExcludeTestRegex string `json:"excludeTestRegex,omitempty"`
	// IncludeTestRegex leaves all others out.
	IncludeTestRegex string `json:"includeTestRegex,omitempty"`
	// TestFile is the name of files of tests; default chainsaw-test. Without an extension it is .yaml or .yml.
	TestFile string `json:"testFile,omitempty"`
	// FullName names tests by their folder too.
	FullName bool `json:"fullName,omitempty"`
}

// ErrorOptions is what is done about errors.
type ErrorOptions struct {
	// Catch runs when a step fails, with the catch of the test and the step.
	Catch []CatchFinally `json:"catch,omitempty"`
}

// ExecutionOptions is how tests are run.
type ExecutionOptions struct {
	// FailFast stops at the first failure.
	FailFast bool `json:"failFast,omitempty"`
	// Parallel is how many tests run at once; nil: as many as there are processors.
	Parallel *int `json:"parallel,omitempty" check:"least=1"`
	// RepeatCount is how often each test runs; nil: once.
	RepeatCount *int `json:"repeatCount,omitempty" check:"least=1"`
	// ForceTerminationGracePeriod is set in everything that has pods.
	ForceTerminationGracePeriod *metav1.Duration `json:"forceTerminationGracePeriod,omitempty"`
}

// NamespaceOptions is what namespace tests run in.
type NamespaceOptions struct {
	// Name of it; empty: each test has one of its own.
	Name string `json:"name,omitempty"`
	// Compiler of the expressions in the template.
	Compiler *Compiler `json:"compiler,omitempty"`
	// Template is what the namespace has beyond its name.
	Template any `json:"template,omitempty"`
	// FastDelete does not wait until the namespace is gone.
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

// ReportOptions is how the run is reported.
type ReportOptions struct {
	// Format of it; default JSON. Empty in a configuration of v1alpha1, where it means that there is no report.
	Format ReportFormat `json:"format,omitempty" check:"enum=JSON|XML|JUNIT-TEST|JUNIT-STEP|JUNIT-OPERATION"`
	// Path is the folder of it; empty: the working directory.
	Path string `json:"path,omitempty"`
	// Name of the file without its extension; default chainsaw-report.
	Name string `json:"name,omitempty"`
}

// TemplatingOptions is how expressions are evaluated.
type TemplatingOptions struct {
	// Enabled says whether resources are templates; default true.
	Enabled bool `json:"enabled"`
	// Compiler of expressions that name none; nil: jp.
	Compiler *Compiler `json:"compiler,omitempty"`
}

// DefaultTimeouts by kind of operation.
type DefaultTimeouts struct {
	// Apply, also create, update and patch; default 5s.
	Apply metav1.Duration `json:"apply"`
	// Assert; default 30s.
	Assert metav1.Duration `json:"assert"`
	// Cleanup; default 30s.
	Cleanup metav1.Duration `json:"cleanup"`
	// Delete; default 15s.
	Delete metav1.Duration `json:"delete"`
	// Error; default 30s.
	Error metav1.Duration `json:"error"`
	// Exec is for commands, scripts and collectors; default 5s.
	Exec metav1.Duration `json:"exec"`
}
