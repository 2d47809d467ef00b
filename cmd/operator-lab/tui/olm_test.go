package tui

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestPackageOf(t *testing.T) {
	subscription := func(apiVersion string) *trace.Object {
		return &trace.Object{Ref: trace.Ref{APIVersion: apiVersion, Kind: "Subscription"}, Raw: []byte(`{"spec": {"name": "cafe"}}`)}
	}
	for o, want := range map[*trace.Object]string{
		nil: "", subscription("operators.coreos.com/v1alpha1"): "cafe", subscription("messaging.knative.dev/v1"): "",
	} {
		if got := packageOf(o); got != want {
			t.Errorf("%+v is of the package %q, want %q", o, got, want)
		}
	}
}

// version returns a ClusterServiceVersion with examples, of an operator that watches namespaces and serves kinds.
func version(tb testing.TB, examples, namespaces string, owned ...map[string]any) *trace.Object {
	tb.Helper()
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"alm-examples": examples, "olm.targetNamespaces": namespaces}},
		"spec":     map[string]any{"displayName": "Cafés", "customresourcedefinitions": map[string]any{"owned": owned}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &trace.Object{Ref: trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}, Raw: raw}
}

const cafe = `{"kind": "Cafe", "apiVersion": "example.com/v1", "metadata": {"name": "corner"}, "spec": {"size": 1, "menu": {"tea": true}, "days": ["mon"]}}`

// cafes is the kind Cafe as a ClusterServiceVersion describes it.
var cafes = map[string]any{
	"name": "cafes.example.com", "version": "v1", "kind": "Cafe", "displayName": "Coffee House",
	"specDescriptors": []map[string]any{
		{"path": "size", "displayName": "Size", "description": "How many tables.", "x-descriptors": []string{hints + "podCount"}},
		{"path": "music", "displayName": "Music", "x-descriptors": []string{hints + "select:jazz", hints + "select:enka"}},
		{"path": "secret", "x-descriptors": []string{hints + "hidden"}},
	},
	"statusDescriptors": []map[string]any{{"path": "phase", "displayName": "Phase"}, {"path": "conditions"}},
}

// TestOffers checks what a ClusterServiceVersion offers to create.
func TestOffers(t *testing.T) {
	namespace := func(o offer) any { return o.example["metadata"].(map[string]any)["namespace"] }
	for namespaces, want := range map[string]string{"": "default", "team": "team", "one,two": "one"} {
		if of, all := offersOf(version(t, "["+cafe+"]", namespaces)); of != "Cafés" || len(all) != 1 || namespace(all[0]) != want || all[0].kind.name() != "Cafe" {
			t.Errorf("with %q: %q, %v", namespaces, of, all)
		}
	}
	if _, all := offersOf(version(t, `[{"kind": "Cafe", "metadata": {"name": "a", "namespace": "mine"}}]`, "team")); len(all) != 1 || namespace(all[0]) != "mine" {
		t.Errorf("its own namespace is not kept: %v", all)
	}
	for _, broken := range []string{"", "{", cafe, "[{}]", "[1]", `[{"metadata": 1}]`} {
		if _, all := offersOf(version(t, broken, "")); len(all) > 0 {
			t.Errorf("of %q: %v", broken, all)
		}
		_, all := offersOf(version(t, broken, "", cafes)) // the kind is served all the same
		if len(all) != 1 || all[0].kind.name() != "Coffee House" || all[0].example["apiVersion"] != "example.com/v1" || namespace(all[0]) != "default" {
			t.Errorf("of %q and a kind: %v", broken, all)
		}
	}
}

// openCafe opens the form of a Cafe by the menu of a ClusterServiceVersion.
func openCafe(t *testing.T, b *bench) *form {
	t.Helper()
	b.cluster.fields = []Field{
		{Path: "days", Type: "array"},
		{Path: "door", Type: "string", Required: true, Default: `"red"`, About: "Its colour."},
		{Path: "menu", Type: "object", Required: true},
		{Path: "music", Type: "string"},
		{Path: "rent", Type: "integer"},
		{Path: "size", Type: "integer", Required: true},
	}
	menu := &menu{}
	menu.addVersion(&b.state, version(t, "["+cafe+"]", "", cafes))
	if menu.heading != "Cafés" || menu.choices[0].text != "create Coffee House" {
		t.Fatalf("the menu offers %q, %+v", menu.heading, menu.choices)
	}
	b.Update(menu.choices[0].do(b.Model)())
	f, is := b.popup.(*form)
	if !is {
		t.Fatalf("no form is opened: %q", b.flash)
	}
	return f
}

// TestForm fills in a form: the values come from the example, and are sent as the types of the schema.
func TestForm(t *testing.T) {
	b := newBench(t, story())
	f := openCafe(t, b)
	var labels []string
	for _, field := range f.fields {
		labels = append(labels, field.label+"="+string(field.text))
	}
	want := []string{"Name=corner", "Namespace=default", "Size=1", "Music=", `days=["mon"]`, "menu.tea=true", "door="}
	if !slices.Equal(labels, want) {
		t.Errorf("it asks for %q, want %q", labels, want)
	}
	press(b.Model, "2 down down right right down right right left down down right")
	if frame := ansi.Strip(b.frame()); !strings.Contains(frame, "Create Coffee House") || !strings.Contains(frame, "spec.menu.tea") {
		t.Errorf("the form is not on the screen:\n%s", frame)
	}
	press(b.Model, "down")
	if frame := ansi.Strip(b.frame()); !strings.Contains(frame, "Its colour.") || !strings.Contains(frame, `string, required, default "red"`) {
		t.Errorf("nothing is said of the field:\n%s", frame)
	}
	b.paste("7")
	b.cluster.calls, b.cluster.err = nil, errors.New("spec.door: Unsupported value")
	b.keys("enter")
	sent := "create apiVersion: example.com/v1\nkind: Cafe\nmetadata:\n  name: corner2\n  namespace: default\n" +
		"spec:\n  days:\n  - mon\n  door: \"7\"\n  menu:\n    tea: false\n  music: jazz\n  size: 3\n"
	if !slices.Equal(b.cluster.calls, []string{sent}) {
		t.Errorf("it asks for %q, want %q", b.cluster.calls, sent)
	}
	if frame := ansi.Strip(b.frame()); b.popup != f || !strings.Contains(frame, "Unsupported value") || !strings.Contains(frame, "corner2") {
		t.Errorf("what was refused is lost:\n%s", frame)
	}
	b.cluster.err = nil
	if b.keys("enter"); b.popup != nil || !strings.Contains(b.flash, "Cafe corner2: done") {
		t.Errorf("it says %q", b.flash)
	}

	f = openCafe(t, b)
	b.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	b.paste(strings.Repeat("long", 40) + "end") // where a value is typed stays in sight
	if frame := ansi.Strip(b.frame()); !strings.Contains(frame, "longend_") {
		t.Errorf("the end of a long value is not in sight:\n%s", frame)
	}
	press(b.Model, "ctrl+u c o r n e r")
	press(b.Model, "down down ctrl+u down down ctrl+u o n e") // of a number nothing, of a list no list: the API server says what is wrong
	if _, text := f.object(); strings.Contains(string(text), "size") || !strings.Contains(string(text), "days: one\n") {
		t.Errorf("it would create\n%s", text)
	}
	if msg, is := b.keys("ctrl+e").(editMsg); !is || b.popup != nil || msg.ref.Name != "corner" {
		t.Errorf("ctrl+e opens no editor: %+v", msg)
	} else {
		testEditedForm(t, b, msg)
	}

	b.cluster.err = errors.New("forbidden")
	menu := &menu{}
	menu.addVersion(&b.state, version(t, "", "")) // of an operator without kinds nothing is offered
	if len(menu.choices) > 0 || menu.heading != "" {
		t.Errorf("the menu offers %q, %+v", menu.heading, menu.choices)
	}
	menu.addVersion(&b.state, version(t, "", "", cafes))
	b.popup = nil
	if b.Update(menu.choices[0].do(b.Model)()); b.popup != nil || !strings.Contains(b.flash, "forbidden") {
		t.Errorf("without a schema it says %q", b.flash)
	}
}

// TestFormKeepsTheRest leaves as it is what a line of a form cannot hold.
func TestFormKeepsTheRest(t *testing.T) {
	b := newBench(t, story())
	long := strings.Repeat("x", longestValue+1)
	example := map[string]any{"kind": "Cafe", "spec": map[string]any{
		"long": long, "poem": "one\ntwo\n", "size": 3.0, "tables": []any{map[string]any{"legs": 4.0}},
	}}
	k := &ownedKind{Kind: "Cafe", SpecDescriptors: []descriptor{{Path: "long"}, {Path: "tables.0.legs"}, {Path: "size.of"}, {Path: "new.one"}}}
	f := newForm(&b.state, k, example, nil)
	var labels []string
	for _, field := range f.fields {
		labels = append(labels, field.label)
	}
	if want := []string{"Name", "Namespace", "new.one", "size", "tables"}; !slices.Equal(labels, want) {
		t.Errorf("it asks for %q, want %q", labels, want)
	}
	want := "kind: Cafe\nspec:\n  long: " + long + "\n  poem: |\n    one\n    two\n  size: 3\n  tables:\n  - legs: 4\n"
	if _, text := f.object(); string(text) != want {
		t.Errorf("it would create\n%s\nwant\n%s", text, want)
	}
}

// TestTurn chooses a value before or after another one, also if none is chosen.
func TestTurn(t *testing.T) {
	for from, want := range map[string][2]string{"": {"b", "a"}, "a": {"b", "b"}, "b": {"a", "a"}} {
		for i, n := range []int{-1, 1} {
			f := formField{text: typed(from), options: []string{"a", "b"}}
			if f.turn(n); string(f.text) != want[i] {
				t.Errorf("%+d from %q is %q, want %q", n, from, f.text, want[i])
			}
		}
	}
}

// testEditedForm creates what the editor left, or nothing if that left nothing.
func testEditedForm(t *testing.T, b *bench, msg editMsg) {
	t.Helper()
	for text, want := range map[string][]string{"kind: Cafe\n": {"create kind: Cafe\n"}, " \n": nil} {
		b.cluster.calls = nil
		if err := os.WriteFile(msg.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.Update(b.edited(editedMsg{msg, nil})())
		if !slices.Equal(b.cluster.calls, want) || strings.Contains(b.flash, "Cafe corner: done") != (want != nil) {
			t.Errorf("of %q it asks %q, and says %q", text, b.cluster.calls, b.flash)
		}
	}
}

// TestInstances lists the objects of an operator's kinds with what the descriptors name, and selects one.
func TestInstances(t *testing.T) {
	b := newBench(t, story())
	zundokos := map[string]any{
		"name": "zundokos.hikawa.example.org", "version": "v1", "kind": "Zundoko",
		"specDescriptors": []map[string]any{{"path": "say", "displayName": "Word"}},
	}
	p := &menu{}
	p.addVersion(&b.state, version(t, "", "", zundokos))
	i := slices.IndexFunc(p.choices, func(c choice) bool { return c.text == "Zundoko demo-001" })
	if i < 1 || p.choices[i].more != "Word Zun" {
		t.Fatalf("the menu offers %+v", p.choices)
	}
	b.filter[ObjectsPane] = "Hikawa"
	p.choices[i].do(b.Model)
	if o := b.objects().subject().object; b.focus != ObjectsPane || o == nil || o.Ref.Name != "demo-001" {
		t.Errorf("selected is %+v in pane %v", o, b.focus)
	}
	k := &ownedKind{StatusDescriptors: []descriptor{{Path: "a.b"}, {Path: "list"}, {Path: "on", DisplayName: "On"}, {Path: "none.at.all"}}}
	if got := k.described([]byte(`{"status": {"a": {"b": 3000000}, "list": [1], "on": true}}`)); got != "a.b 3000000 · On true" {
		t.Errorf("it is described as %q", got)
	}
}

// TestApproval approves an InstallPlan that waits, and no other.
func TestApproval(t *testing.T) {
	b := newBench(t, story())
	plan := &trace.Object{
		Ref: trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Namespace: "team", Name: "install-x"},
		Raw: []byte(`{"spec": {"clusterServiceVersionNames": ["a.v1", "b.v2"]}, "status": {"phase": "RequiresApproval"}}`),
	}
	p := &menu{}
	p.addPlan(&b.state, plan)
	if len(p.choices) != 1 || p.choices[0].text != "approve a.v1, b.v2" {
		t.Fatalf("the menu offers %+v", p.choices)
	}
	b.Update(p.choices[0].do(b.Model)())
	if want := "patch InstallPlan install-x {\"spec\": {\"approved\": true}}"; !slices.Contains(b.cluster.calls, want) {
		t.Errorf("it did %q, want %q", b.cluster.calls, want)
	}
	installed, gone := *plan, *plan
	installed.Raw, gone.Deleted = []byte(`{"spec": {"clusterServiceVersionNames": ["a.v1"]}, "status": {"phase": "Complete"}}`), true
	for _, other := range []*trace.Object{&installed, &gone, nil} {
		if versions := planOf(other); len(versions) > 0 {
			t.Errorf("%+v is offered", versions)
		}
	}
}

// TestChannelRows draws the channels of the package that the selected Subscription is to, with the signs of the terminal.
func TestChannelRows(t *testing.T) {
	c := newClockwork()
	of := trace.Package{Name: "cafe", Catalog: "olm/local", Channels: []trace.Channel{{Name: "stable", Entries: []trace.ChannelEntry{
		{Name: "cafe.v2.0.0", Replaces: "cafe.v1.0.0"}, {Name: "cafe.v1.0.0"},
	}}}, Subscriptions: []trace.Subscription{{Name: "a/cafe", Channel: "stable", Installed: "cafe.v1.0.0", Phase: "Succeeded"}}}
	raw, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	c.journal.Append(trace.Event{Kind: trace.KindPackage, Actor: "olm", After: raw})
	subscription := func(namespace string) *trace.Object {
		return &trace.Object{
			Ref: trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: namespace, Name: "cafe"},
			Raw: []byte(`{"spec": {"name": "cafe"}}`),
		}
	}
	for ascii, want := range map[bool]string{false: "○ cafe.v2.0.0|│              replaces cafe.v1.0.0|● cafe.v1.0.0", true: "o cafe.v2.0.0||              replaces cafe.v1.0.0|* cafe.v1.0.0"} {
		pane := detailPane{&modelOf(t, Options{Journal: c.journal, ASCII: ascii}, 120, 40).state}
		var lines []string
		for _, r := range pane.conditionRows(subject{object: subscription("a")}, 80) {
			lines = append(lines, strings.TrimSpace(r.plain()))
		}
		if got := strings.Join(lines, "|"); !strings.Contains(got, want+"  Succeeded, by Subscription a/cafe|") {
			t.Errorf("it is drawn as %q", got)
		}
		if rows := pane.channelRows(subscription("b")); len(rows) > 0 {
			t.Errorf("of another Subscription: %v", rows)
		}
	}
}

// TestPhases shows the phases of a ClusterServiceVersion where other objects have the types of their conditions, and how long each was.
func TestPhases(t *testing.T) {
	m := modelOf(t, Options{Journal: story().journal, Language: trace.Japanese}, 120, 40)
	o := &trace.Object{
		Ref: trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "cafe.v1.0.0"},
		Raw: []byte(`{"status": {"phase": "Installing", "conditions": [
			{"phase": "Pending", "reason": "RequirementsUnknown", "lastTransitionTime": "2026-11-28T10:00:00Z"},
			{"phase": "InstallReady", "reason": "AllRequirementsMet", "lastTransitionTime": "2026-11-28T10:01:20Z"},
			{"phase": "Installing", "reason": "InstallSucceeded", "lastTransitionTime": "2026-11-28T10:01:20Z"},
			{"phase": "Installing", "reason": "InstallWaiting", "lastTransitionTime": "soon"},
			{"phase": "Failed", "lastTransitionTime": "2026-11-28T10:01:22Z"}]}}`),
	}
	var lines []string
	for _, r := range (detailPane{&m.state}).conditionRows(subject{object: o}, 120) {
		lines = append(lines, strings.Join(strings.Fields(r.plain()), " "))
	}
	want := []string{
		"ClusterServiceVersion cafe.v1.0.0", "Pending 1m20s RequirementsUnknown", "InstallReady <1s AllRequirementsMet", "Installing InstallSucceeded",
		"Installing InstallWaiting", "Failed 現在",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("it is shown as %q", lines)
	}
	plan := &trace.Object{
		Ref: trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Name: "install-j5v9x"}, Raw: []byte(`{"status": {"phase": "RequiresApproval"}}`),
	}
	for want, r := range map[string]row{
		"CSV cafe.v1.0.0 Installing":                 m.objects().row(treeLine{object: o, root: true}, 40, 0),
		"CSV cafe.v1.0.0 Installi…":                  m.objects().row(treeLine{object: o, root: true}, 33, 0),
		"└─ Instal…stall-j5v9x Require…":             m.objects().row(treeLine{object: plan, branch: "└─ "}, 38, 0),
		"└─ InstallPlan install-j5v9x RequiresAppro": m.objects().row(treeLine{object: plan, branch: "└─ "}, 60, 0),
	} {
		if got := strings.Join(strings.Fields(r.plain()), " "); !strings.HasPrefix(got, want) {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}
