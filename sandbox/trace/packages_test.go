package trace

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cafe returns a package with two channels.
func cafe() *Package {
	return &Package{Name: "cafe", Catalog: "olm/local", Channels: []Channel{
		{Name: "fast", Entries: []ChannelEntry{{Name: "cafe.v3.0.0-beta", Version: "3.0.0-beta", SkipRange: "<3.0.0"}}},
		{Name: "stable", Default: true, Entries: []ChannelEntry{
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
	p.Subscriptions = []Subscription{
		{Name: "a/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Phase: "Succeeded", Next: "cafe.v2.0.0", State: "UpgradePending", Plan: "install-x"},
		{Name: "b/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Missing: true, Next: "cafe.v2.0.0", State: "UpgradePending"},
		{Name: "c/cafe", Channel: "fast", Installed: "cafe.v1.0.0", Phase: "Succeeded", Next: "cafe.v3.0.0-beta"},
		{Name: "d/cafe", Channel: "stable"},
		{Name: "f/cafe", Channel: "stable", Installed: "cafe.v1.1.0"},
		{Name: "e/cafe", Channel: "none", Problem: "no operators found in channel none"},
	}
	got := strings.Join(p.Drawing(English), "\n") + "\n"
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNoChannels draws a Subscription to a package that is in no catalog.
func TestNoChannels(t *testing.T) {
	t.Parallel()
	p := Package{Name: "tea", Catalog: "olm/local", Problem: "the catalog has no such package", Subscriptions: []Subscription{
		{Name: "a/tea"},
		{Name: "b/tea", Channel: "stable", Installed: "tea.v1.0.0"},
		{Name: "c/tea", Channel: "stable"},
		{Name: "d/tea", Channel: "stable", Installed: "tea.v1.0.0", Missing: true},
	}}
	got := strings.Join(p.Drawing(English), "\n") + "\n"
	want := `package tea of the catalog olm/local
  the catalog has no such package
  Subscription a/tea: nothing is installed yet
  Subscription b/tea: tea.v1.0.0 is installed
  Subscription c/tea: nothing of the channel stable is installed yet
  Subscription d/tea: tea.v1.0.0 was installed, and is deleted
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPackagesInAJournal follows a Subscription: what is printed, drawn on the page, said of an event and known at the end.
func TestPackagesInAJournal(t *testing.T) {
	t.Parallel()
	j := New(Options{})
	p := cafe()
	var before json.RawMessage
	at := func(s ...Subscription) {
		p.Subscriptions = s
		now, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		j.Append(Event{Kind: KindPackage, Actor: "olm", Object: Ref{Kind: "PackageManifest", Name: "cafe"}, Before: before, After: now})
		before = now
	}
	at(Subscription{Name: "a/cafe", Channel: "stable", Next: "cafe.v1.0.0", Plan: "install-x"})
	at(Subscription{Name: "a/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Phase: "Installing"})
	at(Subscription{Name: "a/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Phase: "Succeeded"})
	at()

	var printed strings.Builder
	if err := NewPrinter(&printed, j, PrintOptions{HideTimes: true, Width: 120}).Update(); err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{
		"olm    Subscription a/cafe: next cafe.v1.0.0 when InstallPlan install-x is approved\n":              1,
		"           ○ cafe.v1.0.0  next for Subscription a/cafe: InstallPlan install-x waits for approval\n": 1,
		"olm    Subscription a/cafe: cafe.v1.0.0 Installing\n":                                               1,
		"           ● cafe.v1.0.0  Installing, by Subscription a/cafe\n":                                     1,
		"olm    Subscription a/cafe: cafe.v1.0.0 Succeeded\n":                                                1,
		"           ● cafe.v1.0.0  Succeeded":                                                                0, // only the phase is another one
		"olm    no Subscription asks for the package cafe\n":                                                 1,
		"package cafe of the catalog olm/local\n":                                                            3,
	} {
		if got := strings.Count(printed.String(), want); got != n {
			t.Errorf("%d times %q, want %d:\n%s", got, want, n, &printed)
		}
	}
	tip := NewTimeline(j)
	tip.Update()
	if all := tip.Tip().Packages(); len(all) != 1 || len(all[0].Subscriptions) != 0 || len(all[0].Channels) != 2 {
		t.Errorf("at the end there is %+v", all)
	}
	if first, second := tip.At(1).Packages()[0], tip.At(2).Packages()[0]; first.Subscriptions[0].Plan == "" || second.Subscriptions[0].Phase != "Installing" {
		t.Error("what is known at an event changes with a later one")
	}

	var page strings.Builder
	if err := WriteHTML(&page, j, HTMLOptions{Language: Japanese}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"OLM のチャンネル (最後の時点)", "<span>カタログ olm/local のパッケージ cafe</span>", "<span>  チャンネル stable (デフォルト)</span>",
		"<span>    ○ cafe.v1.0.0</span>", "次は cafe.v1.0.0 (InstallPlan install-x の承認後)",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}
