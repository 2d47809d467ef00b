package tui

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// olmGroup begins the versions of OLM's kinds.
const olmGroup = "operators.coreos.com/"

// withPhase shortens a name and then a phase, so that both have room.
func (s objectsPane) withPhase(name, phase string, room int) (shorter, cut string) {
	const leastName, leastPhase = 16, 8
	if phase == "" || width(name)+width(phase) <= room || room < leastName+leastPhase {
		return name, phase
	}
	phase = s.cutTo(phase, max(leastPhase, room-width(name)))
	return s.elide(name, room-width(phase)), phase
}

// isOLM reports whether an object is there and of a kind of OLM's.
func isOLM(o *trace.Object, kind string) bool {
	return o != nil && o.Ref.Kind == kind && strings.HasPrefix(o.Ref.APIVersion, olmGroup)
}

// packageOf returns the name of the package that a Subscription of OLM is to; empty if it is none.
func packageOf(o *trace.Object) string {
	var subscription struct{ Spec struct{ Name string } }
	if !isOLM(o, "Subscription") || json.Unmarshal(o.Raw, &subscription) != nil {
		return ""
	}
	return subscription.Spec.Name
}

// phaseTime says how long a ClusterServiceVersion was in the first of its phases. OLM notes whole seconds.
func (s detailPane) phaseTime(phases []trace.Condition) string {
	if len(phases) == 1 {
		return s.t("now", "現在")
	}
	from, wrong := time.Parse(time.RFC3339, phases[0].LastTransitionTime)
	to, alsoWrong := time.Parse(time.RFC3339, phases[1].LastTransitionTime)
	if wrong != nil || alsoWrong != nil {
		return ""
	}
	if to.Equal(from) {
		return "<1s"
	}
	return to.Sub(from).String()
}

// channelRows draws the channels of the package that a Subscription of OLM is to, as they were at the cursor.
func (s detailPane) channelRows(o *trace.Object) (rows []row) {
	name := packageOf(o)
	signs := strings.NewReplacer("●", s.up, "○", s.down, "│", strings.TrimSpace(s.bar))
	for _, p := range s.snapshot.Packages() {
		stands := func(at trace.Subscription) bool { return at.Name == o.Ref.Namespace+"/"+o.Ref.Name }
		if p.Name != name || o.Deleted || !slices.ContainsFunc(p.Subscriptions, stands) {
			continue
		}
		for _, line := range p.Drawing(s.lang) {
			rows = append(rows, text(plain, "  "+signs.Replace(line)))
		}
	}
	return rows
}

// serviceVersion has what the screen reads of a ClusterServiceVersion.
type serviceVersion struct {
	Metadata struct{ Annotations map[string]string }
	Spec     struct {
		DisplayName               string
		CustomResourceDefinitions struct{ Owned []*ownedKind }
	}
}

// ownedKind is a kind that an operator of OLM's serves.
type ownedKind struct {
	// Name is that of its CustomResourceDefinition.
	Name, Version, Kind, DisplayName   string
	SpecDescriptors, StatusDescriptors []descriptor
}

func (k *ownedKind) name() string { return cmp.Or(k.DisplayName, k.Kind) }

// is reports whether an object is of the kind.
func (k *ownedKind) is(apiVersion, kind string) bool {
	_, group, _ := strings.Cut(k.Name, ".")
	of, _, _ := strings.Cut(apiVersion, "/")
	return kind == k.Kind && of == group
}

// descriptor names a field to people, and says how to show it.
type descriptor struct {
	Path, DisplayName, Description string
	XDescriptors                   []string `json:"x-descriptors"`
}

// hints is the beginning of what descriptors say to OpenShift's console.
const hints = "urn:alm:descriptor:com.tectonic.ui:"

func (d *descriptor) has(hint string) bool { return slices.Contains(d.XDescriptors, hints+hint) }

// kind returns the type of the field, as far as the descriptor tells.
func (d *descriptor) kind() string {
	switch {
	case d.has("podCount"):
		return "integer"
	case d.has("booleanSwitch"), d.has("checkbox"):
		return "boolean"
	case d.has("number"):
		return "number"
	}
	return ""
}

// options returns the values to choose from; none if there is no choice.
func (d *descriptor) options() (all []string) {
	for _, hint := range d.XDescriptors {
		if option, is := strings.CutPrefix(hint, hints+"select:"); is {
			all = append(all, option)
		}
	}
	return all
}

// offer is an example of an object that can be created.
type offer struct {
	kind    *ownedKind
	example map[string]any
}

// offersOf returns what a ClusterServiceVersion offers to create, and its name: its examples, and an empty one of each kind that has
// none. Those without a namespace get one that the operator watches.
func offersOf(o *trace.Object) (of string, offers []offer) {
	var version serviceVersion
	if !isOLM(o, "ClusterServiceVersion") || o.Deleted || json.Unmarshal(o.Raw, &version) != nil {
		return "", nil
	}
	annotations, owned := version.Metadata.Annotations, version.Spec.CustomResourceDefinitions.Owned
	var examples []map[string]any
	_ = json.Unmarshal([]byte(annotations["alm-examples"]), &examples) // what is broken is as none
	text := func(from map[string]any, key string) string {
		value, _ := from[key].(string)
		return value
	}
	for _, example := range examples {
		apiVersion, kind := text(example, "apiVersion"), text(example, "kind")
		i := slices.IndexFunc(owned, func(k *ownedKind) bool { return k.is(apiVersion, kind) })
		of := &ownedKind{Kind: kind}
		if i >= 0 {
			of = owned[i]
		}
		if _, is := example["metadata"].(map[string]any); is {
			offers = append(offers, offer{of, example})
		}
	}
	for _, k := range owned {
		_, group, _ := strings.Cut(k.Name, ".")
		if !slices.ContainsFunc(offers, func(each offer) bool { return each.kind == k }) {
			offers = append(offers, offer{k, map[string]any{
				"apiVersion": group + "/" + k.Version, "kind": k.Kind, "metadata": map[string]any{"name": strings.ToLower(k.Kind)},
			}})
		}
	}
	watched, _, _ := strings.Cut(annotations["olm.targetNamespaces"], ",") // empty: all
	for _, each := range offers {
		metadata, _ := each.example["metadata"].(map[string]any)
		metadata["namespace"] = cmp.Or(text(metadata, "namespace"), watched, "default")
	}
	return cmp.Or(version.Spec.DisplayName, o.Ref.Name), offers
}

// described returns the fields of an object that descriptors name, such as "Size 2 · Phase Applied". Maps and lists are left out.
func (k *ownedKind) described(raw json.RawMessage) string {
	var o struct{ Spec, Status map[string]any }
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	var parts []string
	add := func(from map[string]any, descriptors []descriptor) {
		for _, d := range descriptors {
			value, _ := valueAt(from, strings.Split(d.Path, "."))
			switch value.(type) {
			case nil, map[string]any, []any:
				continue
			}
			text, is := value.(string)
			if !is {
				text = scalar(value)
			}
			parts = append(parts, cmp.Or(d.DisplayName, d.Path)+" "+text)
		}
	}
	add(o.Spec, k.SpecDescriptors)
	add(o.Status, k.StatusDescriptors)
	return strings.Join(parts, " · ")
}

// planOf returns the versions that an InstallPlan of OLM's would install if somebody approved it; none if it does not wait for that.
func planOf(o *trace.Object) []string {
	var plan struct {
		Spec   struct{ ClusterServiceVersionNames []string }
		Status struct{ Phase string }
	}
	if !isOLM(o, "InstallPlan") || o.Deleted || json.Unmarshal(o.Raw, &plan) != nil || plan.Status.Phase != "RequiresApproval" {
		return nil
	}
	return plan.Spec.ClusterServiceVersionNames
}

// addPlan adds the approval of an InstallPlan that waits for it.
func (p *menu) addPlan(s *state, o *trace.Object) {
	versions := planOf(o)
	if len(versions) == 0 {
		return
	}
	p.heading = o.Ref.String()
	what := s.t("approve ", "承認: ") + strings.Join(versions, ", ")
	p.choices = append(p.choices, choice{
		text: what,
		help: s.t("Sets spec.approved; then the catalog-operator creates what the plan lists.", "spec.approved を true にする。catalog-operator が計画にあるものを作成する。"),
		do: func(m *Model) tea.Cmd {
			cluster := m.controls.Cluster
			return m.act(what, func(ctx context.Context) error {
				return cluster.Patch(ctx, o.Ref, []byte(`{"spec": {"approved": true}}`))
			})
		},
	})
}

// addVersion adds what an operator of OLM's offers: to create an object of one of its kinds, and those that there are.
func (p *menu) addVersion(s *state, o *trace.Object) {
	of, offers := offersOf(o)
	if len(offers) == 0 {
		return
	}
	p.heading = of
	for _, each := range offers {
		p.choices = append(p.choices, choice{
			text: s.t("create ", "作成: ") + each.kind.name(),
			help: s.t("A form asks for its values; nothing is created before it is sent.", "フォームで値を尋ねる。送信するまで何も作成しない。"),
			do:   func(m *Model) tea.Cmd { return m.openForm(each) },
		})
	}
	for i, each := range offers {
		if slices.ContainsFunc(offers[:i], func(other offer) bool { return other.kind == each.kind }) {
			continue
		}
		for _, object := range s.snapshot.Objects() {
			if object.Deleted || !each.kind.is(object.Ref.APIVersion, object.Ref.Kind) {
				continue
			}
			p.choices = append(p.choices, choice{
				text: each.kind.name() + " " + object.Ref.Name, more: each.kind.described(object.Raw),
				help: s.t("Selects it in pane 1.", "ペイン 1 で選択する。"),
				do: just(func(m *Model) {
					m.nav().setFocus(ObjectsPane)
					m.filter[ObjectsPane] = "" // it may hide the object
					m.sel.object = bare(object.Ref)
				}),
			})
		}
	}
}

// openForm asks for the schema of a kind, and then opens the form of an example.
func (m *Model) openForm(of offer) tea.Cmd {
	c, parent := m.controls.Cluster, m.ctx
	what := m.t("create ", "作成: ") + of.kind.name()
	return func() tea.Msg {
		if of.kind.Name == "" { // nobody says where its schema is
			return schemaMsg{of: of}
		}
		ctx, cancel := context.WithTimeout(parent, patience)
		defer cancel()
		schema, err := c.Fields(ctx, of.kind.Name, of.kind.Version)
		if err != nil {
			return doneMsg{what, err}
		}
		return schemaMsg{of, schema}
	}
}
