package packages

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestStanding finds the phase of what a Subscription has installed, and the InstallPlan that waits.
func TestStanding(t *testing.T) {
	t.Parallel()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	s := &v1alpha1.Subscription{ObjectMeta: meta("team", "cafe"), Spec: &v1alpha1.SubscriptionSpec{Package: "cafe"}}
	s.Status = v1alpha1.SubscriptionStatus{
		InstalledCSV: "cafe.v1.0.0", CurrentCSV: "cafe.v2.0.0", State: v1alpha1.SubscriptionStateUpgradePending,
		Conditions: []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Message: "no\nway"}},
	}
	version := func(namespace, name string, phase v1alpha1.ClusterServiceVersionPhase) v1alpha1.ClusterServiceVersion {
		return v1alpha1.ClusterServiceVersion{ObjectMeta: meta(namespace, name), Status: v1alpha1.ClusterServiceVersionStatus{Phase: phase}}
	}
	plan := func(namespace, name string, phase v1alpha1.InstallPlanPhase, of string) v1alpha1.InstallPlan {
		return v1alpha1.InstallPlan{
			ObjectMeta: meta(namespace, name), Status: v1alpha1.InstallPlanStatus{Phase: phase},
			Spec: v1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{of}},
		}
	}
	versions := []v1alpha1.ClusterServiceVersion{
		version("other", "cafe.v1.0.0", v1alpha1.CSVPhaseFailed), version("team", "cafe.v1.0.0", v1alpha1.CSVPhaseSucceeded),
	}
	plans := []v1alpha1.InstallPlan{
		plan("team", "install-old", v1alpha1.InstallPlanPhaseComplete, "cafe.v2.0.0"),
		plan("other", "install-other", v1alpha1.InstallPlanPhaseRequiresApproval, "cafe.v2.0.0"),
		plan("team", "install-tea", v1alpha1.InstallPlanPhaseRequiresApproval, "tea.v1.0.0"),
		plan("team", "install-new", v1alpha1.InstallPlanPhaseRequiresApproval, "cafe.v2.0.0"),
	}
	cafe := &trace.Package{Name: "cafe", Channels: []trace.Channel{{Name: "fast"}, {Name: "stable", Default: true}}}
	want := trace.Subscription{
		Name: "team/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Phase: "Succeeded", Next: "cafe.v2.0.0",
		State: "UpgradePending", Plan: "install-new", Problem: "no way",
	}
	if diff := cmp.Diff(want, standing(cafe, s, versions, plans)); diff != "" {
		t.Error(diff)
	}
	want.Phase, want.Missing = "", true
	if diff := cmp.Diff(want, standing(cafe, s, versions[:1], plans)); diff != "" {
		t.Error(diff)
	}
}
