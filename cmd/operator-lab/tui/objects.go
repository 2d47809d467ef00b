package tui

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// objectsPane is pane 1: the objects in a tree of owners.
type objectsPane struct{ *state }

// treeLine is a line of the owner tree.
type treeLine struct {
	object *trace.Object
	branch string // the lines of the tree in front
	root   bool
	// planned is a held write: of the object, or the create of one that is not there yet.
	planned *trace.Event
	later   bool
	heading string
}

func (t treeLine) ref() trace.Ref {
	if t.object != nil {
		return t.object.Ref
	}
	if t.planned != nil {
		return bare(t.planned.Object)
	}
	return trace.Ref{}
}

// bare returns a reference by which objects are selected.
func bare(r trace.Ref) trace.Ref {
	r.Subresource, r.UID = "", ""
	return r
}

func sameObject(a, b trace.Ref) bool { return bare(a) == bare(b) }

// memo keeps what is costly to compute and may be computed anew at any time.
type memo struct {
	treeSeq  int64
	treeKey  string
	tree     []treeLine
	tipSeq   int64
	summary  map[*trace.Object]string
	diffs    map[diffKey][]trace.DiffLine
	bars     []byte
	barsKey  barsKey
	broken   *trace.Aftermath // at brokenAt
	brokenAt int64
	links    []string // of the Markdown linksOf
	linksOf  string
}

type treeBuilder struct {
	objectsPane
	planned map[trace.Ref]*trace.Event
	fade    int64
	lines   []treeLine
}

// shown reports whether an object, or something that it owns, has a line.
func (b *treeBuilder) shown(n *trace.Node) bool {
	faded := n.Deleted && n.Changed < b.fade
	return !faded && b.listed(n) || slices.ContainsFunc(n.Children, b.shown)
}

// listed reports whether an object passes the filter.
func (b *treeBuilder) listed(n *trace.Node) bool {
	return b.matches(ObjectsPane, n.Ref.String()+" "+n.Ref.Namespace)
}

// node adds an object and what it owns.
func (b *treeBuilder) node(n *trace.Node, branch, below string, root bool) {
	if !b.shown(n) {
		return
	}
	ref := bare(n.Ref)
	plan := b.planned[ref]
	delete(b.planned, ref)
	if b.listed(n) {
		b.lines = append(b.lines, treeLine{object: n.Object, branch: branch, root: root, planned: plan})
	}
	creates := b.createsUnder(n)
	children := slices.DeleteFunc(slices.Clone(n.Children), func(c *trace.Node) bool { return !b.shown(c) })
	for i, c := range children {
		tee, bar := b.tee, b.bar
		if i == len(children)-1 && len(creates) == 0 {
			tee, bar = b.end, "   "
		}
		b.node(c, below+tee, below+bar, false)
	}
	for i, e := range creates {
		tee := b.tee
		if i == len(creates)-1 {
			tee = b.end
		}
		b.lines = append(b.lines, treeLine{planned: e, branch: below + tee})
	}
}

// createsUnder takes the held creates of objects that an object would own.
func (b *treeBuilder) createsUnder(n *trace.Node) []*trace.Event {
	var out []*trace.Event
	for ref, e := range b.planned {
		if e.Verb == trace.VerbCreate && n.Ref.UID != "" && ownedBy(e.After, n.Ref.UID) {
			out = append(out, e)
			delete(b.planned, ref)
		}
	}
	slices.SortFunc(out, func(x, y *trace.Event) int { return int(x.Seq - y.Seq) })
	return out
}

func ownedBy(raw json.RawMessage, uid string) bool {
	for _, o := range (&trace.Object{Raw: raw}).Meta().Owners {
		if o.UID == uid {
			return true
		}
	}
	return false
}

// rest adds the held writes of objects that are not in the tree.
func (b *treeBuilder) rest() {
	left := slices.SortedFunc(maps.Values(b.planned), func(x, y *trace.Event) int { return int(x.Seq - y.Seq) })
	for _, e := range left {
		b.lines = append(b.lines, treeLine{planned: e, root: true})
	}
}

// later adds the objects that did not exist at the cursor.
func (b *treeBuilder) later(tip *trace.State) {
	first := true
	for _, o := range tip.Objects() {
		if old := b.snapshot.Object(o.Ref); o.Deleted || old != nil && !old.Deleted || !b.matches(ObjectsPane, o.Ref.String()) {
			continue
		}
		if first {
			b.lines = append(b.lines, treeLine{heading: b.t("later than this", "これより後")})
			first = false
		}
		b.lines = append(b.lines, treeLine{object: o, branch: "  ", later: true})
	}
}

// leastObject is the minimum width of a shortened object's name; then its state is left out.
const leastObject = 20

func markStyle(mark string) style {
	switch mark {
	case "+":
		return ok | bold
	case "-":
		return bad
	case "?":
		return planned
	}
	return warn | bold
}

// changeMark returns the sign of the last change of an object; empty if it is long ago, or none was seen.
func changeMark(o *trace.Object, fade int64) string {
	switch {
	case o.Changed < fade || o.Verb == "":
		return ""
	case o.Deleted:
		return "-"
	case o.Created >= fade && o.Verb == trace.Added:
		return "+"
	}
	return "~"
}

// summarize reads a phase or a state, the replicas, or of a custom resource the shortest text of its spec.
func summarize(raw json.RawMessage, ref trace.Ref) string {
	var in struct {
		Spec   map[string]any `json:"spec"`
		Status map[string]any `json:"status"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &in) != nil {
		return ""
	}
	for _, field := range []string{"phase", "state"} {
		if text, _ := in.Status[field].(string); text != "" {
			return text
		}
	}
	if want, is := in.Spec["replicas"].(float64); is {
		ready, _ := in.Status["readyReplicas"].(float64)
		return itoa(int(ready)) + "/" + itoa(int(want))
	}
	if group, _, _ := strings.Cut(ref.APIVersion, "/"); !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
		return ""
	}
	best := ""
	for _, v := range in.Spec {
		if t, is := v.(string); is && t != "" && len(t) <= 24 && (best == "" || len(t) < len(best) || len(t) == len(best) && t < best) {
			best = t
		}
	}
	return best
}

func (s objectsPane) draw(in Rect) content {
	lines := s.lines()
	n, selected := 0, -1
	for i, t := range lines {
		if t.object != nil && !t.later && !t.object.Deleted {
			n++
		}
		if !s.sel.object.IsZero() && sameObject(t.ref(), s.sel.object) && t.heading == "" {
			selected = i
		}
	}
	shown := selected
	if s.follow && s.focus != ObjectsPane {
		shown = newestLine(lines)
	}
	p := content{title: s.t("Objects", "オブジェクト") + s.asOf(), right: itoa(n)}
	if len(lines) == 0 {
		p.rows = []row{text(dim, " "+s.noObjects())}
		return p
	}
	from := window(len(lines), shown, in.H)
	fade := s.fadeSeq()
	for i := from; i < len(lines) && i < from+in.H; i++ {
		r := s.row(lines[i], in.W, fade)
		r.chosen = i == selected && s.focus == ObjectsPane
		if i == selected && !r.chosen {
			r.base |= bold
		}
		p.rows = append(p.rows, r)
	}
	return p
}

// newestLine is the line of what was changed last, or is about to be; -1 if there is none.
func newestLine(lines []treeLine) int {
	at, newest := -1, int64(0)
	for i, t := range lines {
		switch {
		case t.planned != nil:
			return i
		case t.object != nil && !t.later && t.object.Changed > newest:
			at, newest = i, t.object.Changed
		}
	}
	return at
}

// fadeSeq is the Seq before which changes are not marked any more: the
// beginning of the reconcile before the newest.
func (s objectsPane) fadeSeq() int64 {
	i := reconcileAt(s.index.reconciles, s.cursor())
	if i < 1 {
		return 0
	}
	return s.index.reconciles[i-1].First
}

// lines returns the lines of the tree at the cursor; they are kept until something changes.
func (s objectsPane) lines() []treeLine {
	tip := s.index.timeline.Tip()
	key := string(s.filter[ObjectsPane]) + "\x00" + string(s.lang)
	if s.memo.tree != nil && s.memo.treeSeq == s.cursor() && s.memo.tipSeq == tip.Seq() && s.memo.treeKey == key {
		return s.memo.tree
	}
	planned := map[trace.Ref]*trace.Event{}
	for _, reconcile := range s.snapshot.Running() {
		if reconcile.Held != nil && reconcile.Held.IsWrite() {
			planned[bare(reconcile.Held.Object)] = reconcile.Held
		}
	}
	b := treeBuilder{objectsPane: s, planned: planned, fade: s.fadeSeq(), lines: []treeLine{}}
	roots := s.snapshot.Tree()
	// Owners come first: they are the operator's own kind.
	slices.SortStableFunc(roots, func(a, c *trace.Node) int {
		return min(len(c.Children), 1) - min(len(a.Children), 1)
	})
	for _, n := range roots {
		b.node(n, "", "", true)
	}
	b.rest()
	if !s.live {
		b.later(tip)
	}
	s.memo.tree, s.memo.treeSeq, s.memo.tipSeq, s.memo.treeKey = b.lines, s.cursor(), tip.Seq(), key
	return b.lines
}

func (s objectsPane) row(t treeLine, w int, fade int64) row {
	var r row
	if t.heading != "" {
		return text(dim, " "+t.heading)
	}
	r.add(plain, " ").add(frame, t.branch)
	var name seg
	var st style
	var state, more, mark string
	if t.object == nil {
		name = seg{planned, t.planned.Object.String()}
		more, mark, state, st = summarize(t.planned.After, t.planned.Object), "?", s.t("planned", "予定"), planned
	} else {
		o := t.object
		kind := o.Ref.Kind
		if isOLM(o, "ClusterServiceVersion") {
			kind = "CSV" // as all call it; there is no room for more
		}
		name, more = seg{plain, kind + " " + o.Ref.Name}, s.summaryOf(o)
		if t.root && hasStatus(o) {
			name = seg{bold, strings.ToUpper(kind) + " " + o.Ref.Name}
			if more == "" || o.Meta().ObservedGeneration > 0 {
				more = s.generations(o)
			}
		}
		state, st = s.health(o)
		mark = changeMark(o, fade)
		if t.planned != nil {
			mark, state, st = "?", s.t("planned", "予定"), planned
		}
		if t.later {
			r.base, mark, state = later, "", ""
		}
		if o.Deleted {
			r.base = gone
		}
	}
	if t.object != nil && strings.HasPrefix(t.object.Ref.APIVersion, olmGroup) { // its phase says most; the detail has it whole
		name.s, more = s.withPhase(name.s, more, w-r.width()-8)
	}
	s.align(&r, name, more, mark, seg{st, state}, w)
	return r
}

// align puts an object's name, and the columns on its right. Where there
// is little room the name is shortened in its middle.
func (s objectsPane) align(r *row, name seg, more, mark string, state seg, w int) {
	tail := max(3, width(state.s)) + 1
	column := w - tail - 2
	room := column - r.width() - 1
	if more != "" && room-width(more)-1 < min(width(name.s), leastObject) {
		more = strings.NewReplacer("gen ", "g", "obs ", "o").Replace(more)
	}
	if more != "" && room-width(more)-1 < min(width(name.s), leastObject) {
		more = ""
	}
	if more != "" {
		room -= width(more) + 1
	}
	r.add(name.st, s.elide(name.s, room))
	if more != "" {
		at := max(r.width()+1, min(w*52/100, column-width(more)-1))
		r.to(at).add(dim, more)
	}
	r.to(column).add(markStyle(mark), mark)
	r.to(w-1-width(state.s)).add(state.st, state.s)
}

func hasStatus(o *trace.Object) bool {
	return o.Meta().ObservedGeneration > 0 || len(o.Meta().Conditions) > 0
}

// summaryOf says in a word what an object is like.
func (s objectsPane) summaryOf(o *trace.Object) string {
	if text, known := s.memo.summary[o]; known {
		return text
	}
	if s.memo.summary == nil || len(s.memo.summary) > 4096 {
		s.memo.summary = map[*trace.Object]string{}
	}
	text := summarize(o.Raw, o.Ref)
	for _, c := range containerStates(o) { // as kubectl get pods has it, but for the exit code
		if !c.before {
			text = c.reason
			break
		}
	}
	s.memo.summary[o] = text
	return text
}

// selectable returns the lines of objects, and which of them is selected; -1: none.
func (s objectsPane) selectable() (lines []treeLine, at int) {
	lines = slices.DeleteFunc(slices.Clone(s.lines()), func(t treeLine) bool { return t.heading != "" })
	return lines, slices.IndexFunc(lines, func(t treeLine) bool { return sameObject(t.ref(), s.sel.object) })
}

func (s objectsPane) move(n int) {
	lines, i := s.selectable()
	if len(lines) == 0 {
		return
	}
	i = min(max(0, i+n), len(lines)-1)
	s.sel.object = bare(lines[i].ref())
	s.scroll[DetailPane] = 0
}

// settle selects the first object if what is selected is not there.
func (s objectsPane) settle() {
	if lines, at := s.selectable(); at < 0 && len(lines) > 0 {
		s.sel.object = bare(lines[0].ref())
	}
}

// subject returns the selected object, or the write that would make it.
func (s objectsPane) subject() subject {
	if o := s.object(s.sel.object); o != nil {
		return subject{object: o, ref: o.Ref, event: s.index.timeline.Event(o.Changed)}
	}
	for _, t := range s.lines() {
		if t.planned != nil && sameObject(t.ref(), s.sel.object) {
			return subject{event: t.planned, ref: t.ref()}
		}
	}
	return subject{}
}

// noObjects says why no object is listed.
func (s objectsPane) noObjects() string {
	known := s.snapshot.Objects()
	switch {
	case len(known) == 0:
		return s.t("nothing seen yet", "まだ何も見えていない")
	case len(s.filter[ObjectsPane]) > 0:
		return s.t("no object matches the filter; / changes it", "フィルターに一致するオブジェクトはない。/ で変更")
	}
	return s.t("nothing is left", "もう何も残っていない")
}
