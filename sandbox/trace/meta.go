//go:build go1.23

package trace

import (
	"encoding/json"
	"time"
)

// Meta holds what the lab reads of an object's JSON.
type Meta struct {
	// Owners are the owner references.
	Owners []Owner
	// Labels are the labels.
	Labels map[string]string
	// Finalizers are the finalizers.
	Finalizers []string
	Deleting   bool // deletionTimestamp is set
	// Made is the creationTimestamp, which tells seconds.
	Made time.Time
	// Grace is the time that the object has to end in once it is deleted, in seconds.
	Grace int64
	// ObservedGeneration is that of the status; 0 if it has none.
	ObservedGeneration int64
	// Conditions are the conditions of the status.
	Conditions []Condition
}

// Owner is an owner reference.
type Owner struct {
	// APIVersion, Kind, Name and UID identify the owner.
	APIVersion, Kind, Name, UID string
	// Controller reports that it is the controlling owner.
	Controller bool
}

// Condition is a status condition.
type Condition struct {
	// Type is the type of the condition, such as Ready.
	Type string `json:"type"`
	// Phase is a phase that a ClusterServiceVersion of OLM was in: it has a condition for each, one after the other, without a type
	// and a status.
	Phase string `json:"phase"`
	// Status is True, False or Unknown.
	Status string `json:"status"`
	// Reason is the machine-readable reason.
	Reason string `json:"reason"`
	// Message is the explanation for people.
	Message string `json:"message"`
	// LastTransitionTime is when Status last changed.
	LastTransitionTime string `json:"lastTransitionTime"`
	// ObservedGeneration is the generation that the condition describes; 0 if it is not set.
	ObservedGeneration int64 `json:"observedGeneration"`
}

// ReadMeta parses an object's JSON; what cannot be read stays zero. The result is never nil.
func ReadMeta(raw json.RawMessage) *Meta { return parseMeta(raw) }

// parseMeta parses an object's JSON; what cannot be read stays zero.
func parseMeta(raw json.RawMessage) *Meta {
	var in struct {
		Metadata struct {
			Labels            map[string]string `json:"labels"`
			Finalizers        []string          `json:"finalizers"`
			DeletionTimestamp *string           `json:"deletionTimestamp"`
			Made              string            `json:"creationTimestamp"`
			Grace             int64             `json:"deletionGracePeriodSeconds"`
			OwnerReferences   []struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Name       string `json:"name"`
				UID        string `json:"uid"`
				Controller bool   `json:"controller"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
		Status json.RawMessage `json:"status"`
	}
	m := &Meta{}
	if len(raw) == 0 || json.Unmarshal(raw, &in) != nil {
		return m
	}
	m.Labels, m.Finalizers = in.Metadata.Labels, in.Metadata.Finalizers
	m.Deleting, m.Grace = in.Metadata.DeletionTimestamp != nil, in.Metadata.Grace
	m.Made, _ = time.Parse(time.RFC3339, in.Metadata.Made) // else it is not known
	for _, o := range in.Metadata.OwnerReferences {
		m.Owners = append(m.Owners, Owner(o))
	}
	// A status may have any shape, so each part is parsed on its own.
	var observed struct {
		ObservedGeneration int64 `json:"observedGeneration"`
	}
	var conditions struct {
		Conditions []Condition `json:"conditions"`
	}
	if json.Unmarshal(in.Status, &observed) == nil {
		m.ObservedGeneration = observed.ObservedGeneration
	}
	if json.Unmarshal(in.Status, &conditions) == nil {
		m.Conditions = conditions.Conditions
	}
	return m
}
