package kit

import appsv1 "k8s.io/api/apps/v1"

// RolledOut tells whether the pods of a Deployment are all of today's template, and one is available. An old pod beside
// them is not enough: it may lack the labels that a Service selects by.
func RolledOut(d *appsv1.Deployment) bool {
	return d.DeletionTimestamp.IsZero() &&
		d.Status.ObservedGeneration >= d.Generation &&
		d.Status.UpdatedReplicas == d.Status.Replicas &&
		d.Status.AvailableReplicas > 0
}
