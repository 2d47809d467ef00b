package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Package is a package of a catalog of the Operator Lifecycle Manager (OLM), with what is installed of it: the After of a KindPackage
// event, as JSON.
type Package struct {
	Name string `json:"name"`
	// Catalog is the namespace and the name of its CatalogSource.
	Catalog string `json:"catalog"`
	// Problem says why a package that a Subscription asks for has no channels; empty if it has.
	Problem       string         `json:"problem,omitempty"`
	Channels      []Channel      `json:"channels"`
	Subscriptions []Subscription `json:"subscriptions,omitempty"`
}

// Channel is a channel of a package: the order in which versions of an operator replace each other.
type Channel struct {
	// Package and Name are those of the package and of the channel.
	Package string `json:"package"`
	Name    string `json:"name"`
	// Default says that a Subscription that names no channel follows this one.
	Default bool `json:"default"`
	// Entries are the versions: the head, which nothing replaces, what it replaces, and so on; then the others, the newest first.
	Entries []ChannelEntry `json:"entries"`
}

// ChannelEntry is a version of an operator in a channel.
type ChannelEntry struct {
	// Name is that of its ClusterServiceVersion.
	Name string `json:"name"`
	// Version is a semantic version; may be empty.
	Version string `json:"version,omitempty"`
	// Replaces is the version that is upgraded to this one; empty if none is.
	Replaces string `json:"replaces,omitempty"`
	// Skips are versions that are upgraded to this one as well, and to which nothing is upgraded any more.
	Skips []string `json:"skips,omitempty"`
	// SkipRange is a range of versions that are upgraded to this one as well, as in "<1.0.0"; empty if there is none.
	SkipRange string `json:"skipRange,omitempty"`
}

// Subscription says where a Subscription to a package stands.
type Subscription struct {
	// Name is with its namespace.
	Name    string `json:"name"`
	Channel string `json:"channel"`
	// Installed is the ClusterServiceVersion that is installed, Phase its phase; empty if none is. Missing says that somebody has
	// deleted it.
	Installed string `json:"installed,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Missing   bool   `json:"missing,omitempty"`
	// Next is the one that is to be installed; empty if there is no other.
	Next string `json:"next,omitempty"`
	// State is that of the Subscription, and Plan its InstallPlan if that waits for approval.
	State string `json:"state,omitempty"`
	Plan  string `json:"plan,omitempty"`
	// Problem says why OLM cannot resolve it; empty if it can.
	Problem string `json:"problem,omitempty"`
}

// PackageOf decodes the package of a KindPackage event.
func PackageOf(e *Event) (p Package, known bool) {
	known = e.Kind == KindPackage && json.Unmarshal(e.After, &p) == nil
	return p, known
}

// packages are the packages that Subscriptions ask for. The values behind its pointers never change.
type packages []*Package

// Packages returns the packages that Subscriptions ask for, in the order of first appearance.
func (all *packages) Packages() []*Package { return *all }

// apply folds a package in.
func (all *packages) apply(e *Event) {
	p, known := PackageOf(e)
	if !known {
		return
	}
	if i := slices.IndexFunc(*all, p.is); i >= 0 {
		(*all)[i] = &p
		return
	}
	*all = append(*all, &p)
}

// is reports whether another value is of the same package, at another time.
func (p *Package) is(other *Package) bool { return p.Name == other.Name && p.Catalog == other.Catalog }

// Drawing draws the channels of a package as lines: their versions, one below the other, with a line from each to the one that it
// replaces, and beside them the Subscriptions that stand there.
func (p *Package) Drawing(l Language) []string {
	lines := []string{fmt.Sprintf(l.pick("package %s of the catalog %s", "カタログ %[2]s のパッケージ %[1]s"), p.Name, p.Catalog)}
	if p.Problem != "" {
		lines = append(lines, "  "+oneLine(p.Problem))
	}
	for _, c := range p.Channels {
		heading := l.pick("  channel ", "  チャンネル ") + c.Name
		if c.Default {
			heading += l.pick(", the default", " (デフォルト)")
		}
		lines = append(append(lines, heading), p.channel(c, l)...)
	}
	for _, s := range p.Subscriptions {
		if text := s.elsewhere(p, l); text != "" {
			lines = append(lines, "  Subscription "+s.Name+": "+text)
		}
	}
	return lines
}

func (p *Package) channel(c Channel, l Language) (lines []string) {
	longest := 0
	for _, e := range c.Entries {
		longest = max(longest, len(e.Name))
	}
	for i, e := range c.Entries {
		mark, line := "○", " "
		if i+1 < len(c.Entries) && c.Entries[i+1].Name == e.Replaces {
			line = "│"
		}
		var notes []string
		for _, s := range p.Subscriptions {
			switch {
			case s.Channel != c.Name:
			case s.Installed == e.Name:
				mark = "●"
				notes = append(notes, s.phase(l)+l.pick(", by Subscription ", "、Subscription ")+s.Name)
			case s.Next == e.Name:
				notes = append(notes, s.next(l))
			}
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("    %s %-*s  %s", mark, longest, e.Name, strings.Join(notes, "; ")), " "))
		if from := e.upgradedFrom(); from != "" {
			lines = append(lines, fmt.Sprintf("    %s %*s  %s", line, longest, "", from))
		}
	}
	return lines
}

// upgradedFrom says which versions are upgraded to one, in OLM's words; empty if none is.
func (e *ChannelEntry) upgradedFrom() string {
	var parts []string
	if e.Replaces != "" {
		parts = append(parts, "replaces "+e.Replaces)
	}
	if len(e.Skips) > 0 {
		parts = append(parts, "skips "+strings.Join(e.Skips, " and "))
	}
	if e.SkipRange != "" {
		parts = append(parts, "skipRange "+e.SkipRange)
	}
	return strings.Join(parts, ", ")
}

// elsewhere says of a Subscription what stands beside no version of its channel; empty if there is nothing.
func (s *Subscription) elsewhere(p *Package, l Language) string {
	if s.Problem != "" {
		return oneLine(s.Problem)
	}
	for _, c := range p.Channels {
		if c.Name == s.Channel && slices.ContainsFunc(c.Entries, func(e ChannelEntry) bool { return e.Name == cmp.Or(s.Installed, s.Next) }) {
			return ""
		}
	}
	installed := s.Installed + l.pick(" is installed", " がインストール済み")
	if s.Missing {
		installed = s.Installed + l.pick(" was installed, and is deleted", " はインストール後に削除された")
	}
	switch {
	case s.Installed != "" && len(p.Channels) == 0:
		return installed
	case s.Installed != "":
		return fmt.Sprintf(l.pick("%s; the channel %s does not have it", "%s。チャンネル %s にはない"), installed, s.Channel)
	case s.Channel == "":
		return l.pick("nothing is installed yet", "何もインストールされていない")
	}
	return fmt.Sprintf(l.pick("nothing of the channel %s is installed yet", "チャンネル %s からは何もインストールされていない"), s.Channel)
}

// phase says how the installed version is.
func (s *Subscription) phase(l Language) string {
	if s.Missing {
		return l.pick("deleted", "削除済み")
	}
	return cmp.Or(s.Phase, l.pick("no phase yet", "phase はまだない"))
}

// next says of a version that it is the next one for a Subscription, and what it waits for.
func (s *Subscription) next(l Language) string {
	text := fmt.Sprintf(l.pick("next for Subscription %s", "Subscription %s の次"), s.Name)
	switch {
	case s.Plan != "":
		return text + fmt.Sprintf(l.pick(": InstallPlan %s waits for approval", ": InstallPlan %s が承認待ち"), s.Plan)
	case s.State != "":
		return text + ": " + s.State
	}
	return text
}

// text says in one line where a Subscription stands.
func (s *Subscription) text(p *Package, l Language) string {
	if text := s.elsewhere(p, l); text != "" {
		return "Subscription " + s.Name + ": " + text
	}
	var parts []string
	if s.Installed != "" {
		parts = append(parts, s.Installed+" "+s.phase(l))
	}
	if s.Next != "" {
		text := l.pick("next ", "次は ") + s.Next
		if s.Plan != "" {
			text += fmt.Sprintf(l.pick(" when InstallPlan %s is approved", " (InstallPlan %s の承認後)"), s.Plan)
		}
		parts = append(parts, text)
	}
	return "Subscription " + s.Name + ": " + strings.Join(parts, l.pick(", ", "、"))
}

// packageText says in one line where the Subscriptions stand that a KindPackage event tells of.
func packageText(e *Event, l Language) string {
	p, known := PackageOf(e)
	if !known {
		return ""
	}
	if len(p.Subscriptions) == 0 {
		return fmt.Sprintf(l.pick("no Subscription asks for the package %s", "パッケージ %s を求める Subscription はない"), p.Name)
	}
	texts := make([]string, len(p.Subscriptions))
	for i := range p.Subscriptions {
		texts[i] = p.Subscriptions[i].text(&p, l)
	}
	return strings.Join(texts, "; ")
}

// movedOn reports whether a KindPackage event is the first of its package, or a Subscription has come to stand elsewhere in its
// channels; a phase alone is no such thing.
func movedOn(e *Event) bool {
	now, _ := PackageOf(e)
	before, known := PackageOf(&Event{Kind: KindPackage, After: e.Before})
	return !known || !slices.EqualFunc(now.Subscriptions, before.Subscriptions, func(a, b Subscription) bool {
		a.Phase, a.State, b.Phase, b.State = "", "", "", ""
		return a == b
	})
}
