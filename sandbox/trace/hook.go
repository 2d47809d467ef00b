package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// hooked is the form of Before and After of a KindHook event: objects by kind and name, and the status of the Object.
type hooked struct {
	Children map[string]json.RawMessage `json:"children"`
	Status   json.RawMessage            `json:"status"`
}

// HookChange is what a hook's answer wants to be different.
type HookChange struct {
	// Observed and Desired are the numbers of the children that are there and that should be.
	Observed, Desired int
	// Create, Change and Delete are the children, by kind and name, that are missing, different or not wanted; sorted.
	Create, Change, Delete []string
	// Status reports whether the status is different.
	Status bool
}

// HookChange returns what the answer of a KindHook event wants to be different; false if it says nothing of children.
func (e *Event) HookChange() (c HookChange, known bool) {
	var before, after hooked
	if json.Unmarshal(e.Before, &before) != nil || json.Unmarshal(e.After, &after) != nil {
		return c, false
	}
	c.Observed, c.Desired = len(before.Children), len(after.Children)
	for _, name := range slices.Sorted(maps.Keys(after.Children)) {
		was, there := before.Children[name]
		switch {
		case !there:
			c.Create = append(c.Create, name)
		case !bytes.Equal(was, after.Children[name]):
			c.Change = append(c.Change, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Children)) {
		if _, wanted := after.Children[name]; !wanted {
			c.Delete = append(c.Delete, name)
		}
	}
	c.Status = !bytes.Equal(before.Status, after.Status)
	return c, true
}

// mostNamed is how many children of each sort a HookText names.
const mostNamed = 3

// HookText says on one line what a hook answered: how many children there are and should be, which to create (+), to
// change (~) and to delete (-), or what is wrong.
func HookText(e *Event, l Language) string {
	if e.Error != "" {
		return oneLine(e.Error)
	}
	c, known := e.HookChange()
	if !known {
		return l.pick("it answered", "応答あり")
	}
	var text strings.Builder
	fmt.Fprintf(&text, l.pick("%d observed, %d desired", "観測 %d、希望 %d"), c.Observed, c.Desired)
	for _, part := range []struct {
		sign  string
		names []string
	}{{"+", c.Create}, {"~", c.Change}, {"-", c.Delete}} {
		for i, name := range part.names {
			if i == mostNamed {
				fmt.Fprintf(&text, l.pick("  %s %d more", "  %s ほか %d 件"), part.sign, len(part.names)-i)
				break
			}
			text.WriteString("  " + part.sign + " " + name)
		}
	}
	if c.Status {
		text.WriteString("  ~ status")
	}
	return text.String()
}

// hook returns the text of an asked hook, with the time that it took.
func (p *Printer) hook(e *Event) string {
	text := "hook " + e.Verb + ": " + HookText(e, p.o.Language)
	if e.Error != "" {
		text = "hook " + e.Verb + p.o.Language.pick(": no answer that can be used", ": 使える応答なし") // the error is that of the reconcile
	}
	if !p.o.HideTimes {
		text += " (" + FormatDuration(e.Duration) + ")"
	}
	return strings.TrimSpace(text)
}
