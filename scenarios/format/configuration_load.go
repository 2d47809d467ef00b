package format

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigurationFile is the default configuration file.
const ConfigurationFile = ".chainsaw.yaml"

// DefaultConfiguration returns the configuration that is used if there is no file.
func DefaultConfiguration() *Configuration {
	c := &Configuration{}
	c.APIVersion, c.Kind, c.Name = V1alpha2, "Configuration", "default"
	c.Spec.Templating.Enabled = true
	c.Spec.setDefaults()
	return c
}

// LoadConfiguration loads a configuration of either version and sets its defaults. If file is empty, it reads
// [ConfigurationFile] in the working directory if that exists, and otherwise returns [DefaultConfiguration]. The error
// is [Problems].
func LoadConfiguration(file string) (*Configuration, error) {
	if file == "" {
		if _, err := (source{}).stat(ConfigurationFile); errors.Is(err, fs.ErrNotExist) {
			return DefaultConfiguration(), nil
		}
		file = ConfigurationFile
	}
	data, err := (source{}).read(file)
	if err != nil {
		return nil, problems(file, err)
	}
	c, wrong := readConfiguration(file, data)
	if len(wrong) > 0 {
		return nil, wrong.sorted()
	}
	return c, nil
}

// readConfiguration reads the text of a configuration.
func readConfiguration(file string, data []byte) (*Configuration, Problems) {
	docs, wrong := parse(file, data)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if len(docs) != 1 {
		return nil, Problems{{File: file, Message: fmt.Sprintf("has %d documents, one configuration is wanted", len(docs))}}
	}
	d := newDecoder(file, docs[0], false)
	if !d.kind(docs[0].root, "Configuration", V1alpha1, V1alpha2) {
		return nil, d.problems
	}
	out := &Configuration{}
	out.Spec.Templating.Enabled = true
	if version := lookup(docs[0].root, "apiVersion"); target(version).Value == V1alpha1 {
		old := &oldConfiguration{Spec: oldConfigurationSpec{Template: true, ReportName: reportName}}
		d.value(docs[0].root, reflect.ValueOf(old).Elem(), nil, scope{}, nil)
		*out = *old.convert()
	} else {
		d.value(docs[0].root, reflect.ValueOf(out).Elem(), nil, scope{}, nil)
		out.Spec.Report.setDefaults()
	}
	d.meta(docs[0].root, &out.ObjectMeta)
	out.Spec.setDefaults()
	return out, d.problems
}

// reportName is the default name of a report.
const reportName = "chainsaw-report"

// setDefaults sets what is not given.
func (r *ReportOptions) setDefaults() {
	if r == nil {
		return
	}
	if r.Format == "" {
		r.Format = ReportJSON
	}
	if r.Name == "" {
		r.Name = reportName
	}
}

// setDefaults sets the fields that are not given. A timeout of zero cannot be told from a missing one, and is useless
// anyway.
func (s *ConfigurationSpec) setDefaults() {
	if s.Deletion.Propagation == "" {
		s.Deletion.Propagation = metav1.DeletePropagationBackground
	}
	if s.Discovery.TestFile == "" {
		s.Discovery.TestFile = TestFile
	}
	for to, d := range map[*metav1.Duration]time.Duration{
		&s.Timeouts.Apply:   5 * time.Second,
		&s.Timeouts.Assert:  30 * time.Second,
		&s.Timeouts.Cleanup: 30 * time.Second,
		&s.Timeouts.Delete:  15 * time.Second,
		&s.Timeouts.Error:   30 * time.Second,
		&s.Timeouts.Exec:    5 * time.Second,
	} {
		if to.Duration == 0 {
			to.Duration = d
		}
	}
}

// oldConfiguration is the v1alpha1 Configuration.
type oldConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec oldConfigurationSpec `json:"spec" check:"required"`
}

type oldConfigurationSpec struct {
	Timeouts                    DefaultTimeouts            `json:"timeouts"`
	SkipDelete                  bool                       `json:"skipDelete"`
	Template                    bool                       `json:"template"`
	Compiler                    *Compiler                  `json:"compiler"`
	FailFast                    bool                       `json:"failFast"`
	Parallel                    *int                       `json:"parallel" check:"least=1"`
	DeletionPropagationPolicy   metav1.DeletionPropagation `json:"deletionPropagationPolicy" check:"enum=Orphan|Background|Foreground"`
	ReportFormat                ReportFormat               `json:"reportFormat" check:"enum=JSON|XML|JUNIT-TEST|JUNIT-STEP|JUNIT-OPERATION"`
	ReportPath                  string                     `json:"reportPath"`
	ReportName                  string                     `json:"reportName"`
	Namespace                   string                     `json:"namespace"`
	NamespaceTemplateCompiler   *Compiler                  `json:"namespaceTemplateCompiler"`
	NamespaceTemplate           any                        `json:"namespaceTemplate"`
	FastNamespaceDeletion       bool                       `json:"fastNamespaceDeletion"`
	FullName                    bool                       `json:"fullName"`
	ExcludeTestRegex            string                     `json:"excludeTestRegex"`
	IncludeTestRegex            string                     `json:"includeTestRegex"`
	RepeatCount                 *int                       `json:"repeatCount" check:"least=1"`
	TestFile                    string                     `json:"testFile"`
	ForceTerminationGracePeriod *metav1.Duration           `json:"forceTerminationGracePeriod"`
	DelayBeforeCleanup          *metav1.Duration           `json:"delayBeforeCleanup"`
	Clusters                    Clusters                   `json:"clusters"`
	Catch                       []CatchFinally             `json:"catch"`
}

// convert makes it a v1alpha2 Configuration.
func (c *oldConfiguration) convert() *Configuration {
	out := &Configuration{TypeMeta: c.TypeMeta, ObjectMeta: c.ObjectMeta}
	out.APIVersion = V1alpha2
	in := c.Spec
	out.Spec = ConfigurationSpec{
		Cleanup:  CleanupOptions{SkipDelete: in.SkipDelete, DelayBeforeCleanup: in.DelayBeforeCleanup},
		Clusters: in.Clusters,
		Deletion: DeletionOptions{Propagation: in.DeletionPropagationPolicy},
		Discovery: DiscoveryOptions{
			ExcludeTestRegex: in.ExcludeTestRegex,
			IncludeTestRegex: in.IncludeTestRegex,
			TestFile:         in.TestFile,
			FullName:         in.FullName,
		},
		Error: ErrorOptions{Catch: in.Catch},
		Execution: ExecutionOptions{
			FailFast:                    in.FailFast,
			Parallel:                    in.Parallel,
			RepeatCount:                 in.RepeatCount,
			ForceTerminationGracePeriod: in.ForceTerminationGracePeriod,
		},
		Namespace: NamespaceOptions{
			Name:       in.Namespace,
			Compiler:   in.NamespaceTemplateCompiler,
			Template:   in.NamespaceTemplate,
			FastDelete: in.FastNamespaceDeletion,
		},
		Report:     &ReportOptions{Format: in.ReportFormat, Path: in.ReportPath, Name: in.ReportName},
		Templating: TemplatingOptions{Enabled: in.Template, Compiler: in.Compiler},
		Timeouts:   in.Timeouts,
	}
	return out
}
