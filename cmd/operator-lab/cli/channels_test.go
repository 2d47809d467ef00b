package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/catalog"
)

// cafe returns a package with two channels.
func cafe() *olmPackage {
	return &olmPackage{Name: "cafe", Catalog: "olm/local", Channels: []catalog.Channel{
		{Name: "fast", Entries: []catalog.Entry{{Name: "cafe.v3.0.0-beta", Version: "3.0.0-beta", SkipRange: "<3.0.0"}}},
		{Name: "stable", Default: true, Entries: []catalog.Entry{
			{Name: "cafe.v2.0.0", Version: "2.0.0", Replaces: "cafe.v1.0.0", Skips: []string{"cafe.v1.1.0"}, SkipRange: "<2.0.0"},
			{Name: "cafe.v1.0.0", Version: "1.0.0", Replaces: "cafe.v0.9.0"},
			{Name: "cafe.v1.1.0", Version: "1.1.0"},
		}},
	}}
}

// TestChannelsAreDrawn draws channels with Subscriptions that stand at all places where one can stand.
func TestChannelsAreDrawn(t *testing.T) {
	t.Parallel()
	p := cafe()
	p.Subscriptions = []olmSubscription{
		{Name: "a/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Phase: "Succeeded", Next: "cafe.v2.0.0", State: "UpgradePending", Plan: "install-x"},
		{Name: "b/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Missing: true, Next: "cafe.v2.0.0", State: "UpgradePending"},
		{Name: "c/cafe", Channel: "fast", Installed: "cafe.v1.0.0", Phase: "Succeeded", Next: "cafe.v3.0.0-beta"},
		{Name: "d/cafe", Channel: "stable"},
		{Name: "f/cafe", Channel: "stable", Installed: "cafe.v1.1.0"},
		{Name: "e/cafe", Channel: "none", Problem: "no operators found in channel none"},
	}
	var got strings.Builder
	p.draw(&got)
	want := `package cafe of the catalog olm/local
  channel fast
    ○ cafe.v3.0.0-beta  next for Subscription c/cafe
                        skipRange <3.0.0
  channel stable, the default
    ○ cafe.v2.0.0  next for Subscription a/cafe: InstallPlan install-x waits for approval; next for Subscription b/cafe: UpgradePending
    │              replaces cafe.v1.0.0, skips cafe.v1.1.0, skipRange <2.0.0
    ● cafe.v1.0.0  Succeeded, by Subscription a/cafe; deleted, by Subscription b/cafe
                   replaces cafe.v0.9.0
    ● cafe.v1.1.0  no phase yet, by Subscription f/cafe
  Subscription c/cafe: cafe.v1.0.0 is installed; the channel fast does not have it
  Subscription d/cafe: nothing of the channel stable is installed yet
  Subscription e/cafe: no operators found in channel none
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

// TestNoChannels draws a Subscription to a package that is in no catalog.
func TestNoChannels(t *testing.T) {
	t.Parallel()
	p := olmPackage{Name: "tea", Catalog: "olm/local", Problem: "the catalog has no such package", Subscriptions: []olmSubscription{
		{Name: "a/tea"},
		{Name: "b/tea", Channel: "stable", Installed: "tea.v1.0.0"},
		{Name: "c/tea", Channel: "stable"},
		{Name: "d/tea", Channel: "stable", Installed: "tea.v1.0.0", Missing: true},
	}}
	var got strings.Builder
	p.draw(&got)
	want := `package tea of the catalog olm/local
  the catalog has no such package
  Subscription a/tea: nothing is installed yet
  Subscription b/tea: tea.v1.0.0 is installed
  Subscription c/tea: nothing of the channel stable is installed yet
  Subscription d/tea: tea.v1.0.0 was installed, and is deleted
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

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
	want := olmSubscription{
		Name: "team/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Phase: "Succeeded", Next: "cafe.v2.0.0",
		State: "UpgradePending", Plan: "install-new", Problem: "no way",
	}
	if diff := cmp.Diff(want, cafe().standing(s, versions, plans)); diff != "" {
		t.Error(diff)
	}
	want.Phase, want.Missing = "", true
	if diff := cmp.Diff(want, cafe().standing(s, versions[:1], plans)); diff != "" {
		t.Error(diff)
	}
}
