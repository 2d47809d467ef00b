package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionRunning of a Report is True while it waits for a period, or for its data. It is False when it has ended.
const ConditionRunning = "Running"

// Reasons of the condition Running.
const (
	// ReasonPeriodWaiting: the period is not over.
	ReasonPeriodWaiting = "ReportingPeriodWaiting"
	// ReasonUnmetDependencies: the period is over, and something it is made of is not there, or not as far.
	ReasonUnmetDependencies = "ReportingPeriodUnmetDependencies"
	// ReasonPeriodFinished: a period was finished, and the next one follows.
	ReasonPeriodFinished = "ReportingPeriodFinished"
	// ReasonFinished: all periods are finished.
	ReasonFinished = "ReportFinished"
	// ReasonInvalid: the query or an input cannot be used. It is tried again when the Report changes, and once in a while.
	ReasonInvalid = "InvalidReport"
	// ReasonFailed: the SQL failed. It is tried again.
	ReasonFailed = "GenerateReportFailed"
)

// ReportSpec says what is computed, and for which time.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) || has(self.reportingStart) && has(self.reportingEnd)",message="without a schedule, reportingStart and reportingEnd are needed"
// +kubebuilder:validation:XValidation:rule="!has(self.runImmediately) || !self.runImmediately || has(self.reportingStart) && has(self.reportingEnd) && !has(self.schedule)",message="runImmediately needs reportingStart and reportingEnd, and no schedule"
// +kubebuilder:validation:XValidation:rule="!has(self.reportingStart) || !has(self.reportingEnd) || self.reportingStart < self.reportingEnd",message="reportingEnd must be after reportingStart"
type ReportSpec struct {
	// query is the name of a ReportQuery.
	// +kubebuilder:validation:MinLength=1
	Query string `json:"query"`

	// schedule makes it one report for each period. Default: it is one, from reportingStart to reportingEnd.
	// +optional
	Schedule *ReportSchedule `json:"schedule,omitempty"`

	// reportingStart is when the first period begins. Default: when the operator first saw the Report.
	// +optional
	ReportingStart *metav1.Time `json:"reportingStart,omitempty"`

	// reportingEnd is when the last period ends. Default: with a schedule, there is no end.
	// +optional
	ReportingEnd *metav1.Time `json:"reportingEnd,omitempty"`

	// runImmediately takes the data that is there, and waits neither for reportingEnd nor for data.
	// +optional
	RunImmediately bool `json:"runImmediately,omitempty"`

	// expiration is how long the operator keeps the Report after it first saw it. Then it deletes the Report. Default: forever.
	// +optional
	Expiration *metav1.Duration `json:"expiration,omitempty"`

	// overwriteExistingData keeps the rows of the last period only.
	// +optional
	OverwriteExistingData bool `json:"overwriteExistingData,omitempty"`

	// inputs of the query.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Inputs []ReportInput `json:"inputs,omitempty"`
}

// ReportInput chooses an input of the query.
type ReportInput struct {
	// name of the input.
	Name string `json:"name"`
	// value of it.
	Value apiextensionsv1.JSON `json:"value"`
}

// Period is how long the periods of a schedule are.
// +kubebuilder:validation:Enum=hourly;daily;weekly;monthly;cron
type Period string

// The periods.
const (
	Hourly  Period = "hourly"
	Daily   Period = "daily"
	Weekly  Period = "weekly"
	Monthly Period = "monthly"
	Cron    Period = "cron"
)

// ReportSchedule says when a period ends and the next one begins, in UTC.
//
// +kubebuilder:validation:XValidation:rule="(self.period == 'cron') == has(self.cron)",message="cron is needed for the period cron, and for no other"
type ReportSchedule struct {
	// period is how long they are.
	Period Period `json:"period"`

	// hourly has minute and second of the hour.
	// +optional
	Hourly *ScheduleMoment `json:"hourly,omitempty"`
	// daily has hour, minute and second of the day.
	// +optional
	Daily *ScheduleMoment `json:"daily,omitempty"`
	// weekly has the day of the week, and the time.
	// +optional
	Weekly *ScheduleMoment `json:"weekly,omitempty"`
	// monthly has the day of the month, and the time. Months that do not have the day have no end of a period.
	// +optional
	Monthly *ScheduleMoment `json:"monthly,omitempty"`
	// cron is an expression of cron with five fields.
	// +optional
	Cron *ScheduleCron `json:"cron,omitempty"`
}

// ScheduleMoment is when one period ends and the next one begins. What a period does not need is not used.
type ScheduleMoment struct {
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=59
	// +optional
	Second int `json:"second,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=59
	// +optional
	Minute int `json:"minute,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=23
	// +optional
	Hour int `json:"hour,omitempty"`
	// dayOfWeek of weekly. Default: sunday.
	// +kubebuilder:validation:Enum=sunday;monday;tuesday;wednesday;thursday;friday;saturday
	// +optional
	DayOfWeek string `json:"dayOfWeek,omitempty"`
	// dayOfMonth of monthly. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31
	// +optional
	DayOfMonth int `json:"dayOfMonth,omitempty"`
}

// ScheduleCron is an expression of cron.
type ScheduleCron struct {
	// expression with five fields, such as */15 * * * *.
	// +kubebuilder:validation:MaxLength=256
	Expression string `json:"expression"`
}

// ReportStatus is what was computed.
type ReportStatus struct {
	// lastReportTime is when the last finished period ended.
	// +optional
	LastReportTime *metav1.Time `json:"lastReportTime,omitempty"`

	// nextReportTime is when the next period ends.
	// +optional
	NextReportTime *metav1.Time `json:"nextReportTime,omitempty"`

	// tableRef names the table of the rows.
	// +optional
	TableRef *TableRef `json:"tableRef,omitempty"`

	// observedGeneration is the metadata.generation this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Running.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Report is the rows of a ReportQuery, for one time or for one period after the other.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=reports,singular=report,scope=Namespaced
// +kubebuilder:printcolumn:name="Query",type=string,JSONPath=`.spec.query`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule.period`
// +kubebuilder:printcolumn:name="Running",type=string,JSONPath=`.status.conditions[?(@.type=="Running")].reason`
// +kubebuilder:printcolumn:name="Last Report Time",type=string,JSONPath=`.status.lastReportTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Report struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is computed, and for which time.
	// +required
	Spec ReportSpec `json:"spec,omitempty"`
	// status is what was computed.
	// +optional
	Status ReportStatus `json:"status,omitempty"`
}

// ReportList is a list of Report.
//
// +kubebuilder:object:root=true
type ReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Report `json:"items"`
}
